package eldest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"sort"
	"strconv"
	"strings"
	"sync"
)

// fakeExpiryMs is longer than any test waits: a holder's own ttl counts, and no lease ends by itself while a test looks
// for something else.
const fakeExpiryMs = 3_600_000

// fakeState is the state that all nodes of a fake cluster serve.
type fakeState struct {
	mu         sync.Mutex
	changed    *sync.Cond
	docs       map[string]Document
	processes  map[string]map[string]any
	remembered map[string]reply
	roles      map[string]*fakeRole
	listeners  map[string][]chan string
	events     []map[string]any
	// Ids up to this one are no longer kept.
	compacted int
	tokens    int
}

type fakeRole struct {
	holder string
	token  int
	line   []string
}

func newFakeState() *fakeState {
	s := &fakeState{docs: map[string]Document{}, processes: map[string]map[string]any{}, remembered: map[string]reply{}}
	s.roles, s.listeners = map[string]*fakeRole{}, map[string][]chan string{}
	s.changed = sync.NewCond(&s.mu)
	return s
}

// The caller of tell holds the lock.
func (s *fakeState) tell(event map[string]any) string {
	id := strconv.Itoa(len(s.events) + 1)
	event["id"] = id
	s.events = append(s.events, event)
	s.changed.Broadcast()
	return id
}

// happened returns the number of changes. A connection that is cut orders nothing between its two ends, so a test asks
// under the lock.
func (s *fakeState) happened() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.events)
}

// reply repeats the answer to a write with a known key; calls of roles get the present state.
func (s *fakeState) reply(c call, w http.ResponseWriter, r *http.Request) (reply, bool) {
	// A call that waits for a change also watches its context.
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case <-r.Context().Done():
			s.mu.Lock()
			s.changed.Broadcast()
			s.mu.Unlock()
		case <-stop:
		}
	}()
	s.mu.Lock()
	defer s.mu.Unlock()
	table := strings.Split(c.path, "/")[2]
	known, found := s.remembered[c.key()]
	if c.key() != "" && found && table != "roles" {
		return known, false
	}
	var said reply
	switch table {
	case "docs":
		said = s.doc(c)
	case "roles":
		if c.verb == "tie" {
			s.tie(c, w, r.Context())
			return reply{}, true
		}
		said = s.role(c, r.Context())
	case "processes":
		said = s.process(c)
	case "commands":
		said = s.command(c)
	case "feed":
		s.feed(c, w, r.Context())
		return reply{}, true
	case "channels":
		if c.method == http.MethodGet {
			s.listen(c, w, r.Context())
			return reply{}, true
		}
		said = s.publish(c)
	case "status":
		said = ok(map[string]any{"cluster": "fake", "mode": "safe"})
	default:
		said = problemReply(404, "not_found", nil)
	}
	if c.key() != "" && said.status < 300 {
		s.remembered[c.key()] = said
	}
	return said, false
}

func (s *fakeState) doc(c call) reply {
	name := strings.TrimPrefix(c.path, "/v1/docs/")
	if c.path == "/v1/docs" {
		return s.docPage(c)
	}
	found, there := s.docs[name]
	if c.method == http.MethodGet {
		if !there {
			return problemReply(404, "not_found", nil)
		}
		return reply{200, string(found.Value), map[string]string{"Etag": `"` + found.Rev + `"`}}
	}
	if role := s.former(c.header.Get("If-Role")); role != "" {
		return problemReply(412, "role_not_held", map[string]any{"role": role})
	}
	if wanted := c.header.Get("If-Match"); wanted != "" && wanted != `"`+found.Rev+`"` || c.header.Get("If-None-Match") != "" && there {
		return problemReply(412, "precondition_failed", map[string]any{"current_rev": found.Rev})
	}
	if c.method == http.MethodDelete {
		delete(s.docs, name)
		s.tell(map[string]any{"kind": "change", "table": "doc", "key": name, "op": "delete"})
		return ok(map[string]any{"key": name})
	}
	rev := s.tell(map[string]any{"kind": "change", "table": "doc", "key": name, "op": "put", "value": json.RawMessage(c.body)})
	s.docs[name] = Document{Key: name, Value: c.body, Rev: rev}
	return ok(map[string]any{"key": name, "rev": rev, "created": !there})
}

// former is the role that a write names under a token that is not, or no longer, the role's.
func (s *fakeState) former(line string) string {
	if line == "" {
		return ""
	}
	escaped, token, _ := strings.Cut(line, "; token=")
	name, _ := url.PathUnescape(escaped)
	if role := s.roles[name]; role != nil && role.holder != "" && strconv.Itoa(role.token) == token {
		return ""
	}
	return name
}

func (s *fakeState) docPage(c call) reply {
	var keys []string
	for key := range s.docs {
		if strings.HasPrefix(key, c.query.Get("prefix")) && key > c.query.Get("after") {
			keys = append(keys, key)
		}
	}
	sort.Strings(keys)
	items, next := []Document{}, any(nil)
	for _, key := range keys {
		if len(items) == 2 {
			next = items[1].Key
			break
		}
		items = append(items, s.docs[key])
	}
	return ok(map[string]any{"items": items, "next": next})
}

func (s *fakeState) role(c call, ctx context.Context) reply {
	role := s.roles[c.name]
	if role == nil {
		role = &fakeRole{}
		s.roles[c.name] = role
	}
	who := c.field("instance_id")
	switch c.verb {
	case "acquire":
		return s.acquire(c, role, who, ctx)
	case "elect":
		s.take(c.name, role, who, "replaced")
		return grantReply(c.name, role, "elected")
	case "":
		return ok(role.info(c.name))
	case "check":
		token := strconv.Itoa(role.token)
		return ok(map[string]any{"valid": role.holder != "" && token == c.query.Get("token")})
	}
	var asked speaking
	_ = json.Unmarshal(c.body, &asked)
	if role.holder != who || uint64(role.token) != asked.Token {
		return problemReply(410, "lease_lost", map[string]any{"role": c.name})
	}
	if c.verb == "release" {
		s.free(c.name, role, "released")
		return ok(map[string]any{"role": c.name, "token": role.token, "released": true})
	}
	return ok(map[string]any{"role": c.name, "token": role.token, "expires_in_ms": fakeExpiryMs})
}

func (s *fakeState) acquire(c call, role *fakeRole, who string, ctx context.Context) reply {
	if role.holder == who {
		return grantReply(c.name, role, "already_leader")
	}
	if c.field("wait_ms") != "" && role.holder != "" {
		role.line = append(role.line, who)
		for ctx.Err() == nil && role.holder != who && !(role.holder == "" && role.line[0] == who) {
			s.changed.Wait()
		}
		role.line = without(role.line, who)
		if ctx.Err() != nil {
			return reply{status: 503}
		}
	}
	if role.holder == who {
		return grantReply(c.name, role, "already_leader")
	}
	if role.holder != "" {
		return problemReply(409, "role_held", role.info(c.name))
	}
	s.take(c.name, role, who, "")
	return grantReply(c.name, role, "elected")
}

func without(line []string, who string) (rest []string) {
	for _, one := range line {
		if one != who {
			rest = append(rest, one)
		}
	}
	return rest
}

func (s *fakeState) take(name string, role *fakeRole, who, reason string) {
	if role.holder != "" {
		s.free(name, role, reason)
	}
	s.tokens++
	role.holder, role.token = who, s.tokens
	s.tell(map[string]any{"kind": "role_acquired", "role": name, "instance_id": who, "token": role.token})
}

func (s *fakeState) free(name string, role *fakeRole, reason string) {
	who := role.holder
	role.holder = ""
	s.tell(map[string]any{"kind": "role_lost", "role": name, "instance_id": who, "token": role.token, "reason": reason})
}

func (r *fakeRole) info(name string) map[string]any {
	if r.holder == "" {
		return map[string]any{"role": name, "leader": nil, "token": nil, "waiting": len(r.line)}
	}
	leader := map[string]any{"instance_id": r.holder}
	return map[string]any{"role": name, "leader": leader, "token": r.token, "expires_in_ms": fakeExpiryMs, "waiting": len(r.line)}
}

func grantReply(name string, role *fakeRole, outcome string) reply {
	return ok(map[string]any{"outcome": outcome, "role": name, "token": role.token, "expires_in_ms": fakeExpiryMs})
}

// stream200 begins an answer without an end.
func stream200(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(200)
	w.(http.Flusher).Flush()
}

func event(w http.ResponseWriter, kind, id string, value any) {
	text, _ := encode(value)
	if id != "" {
		fmt.Fprintf(w, "id: %s\n", id)
	}
	fmt.Fprintf(w, "event: %s\ndata: %s\n\n", kind, text)
	w.(http.Flusher).Flush()
}

// tie stays open until the test ends it: only real nodes act on its end.
func (s *fakeState) tie(c call, w http.ResponseWriter, ctx context.Context) {
	stream200(w)
	event(w, "tied", "", map[string]any{"kind": "tied", "role": c.name, "expires_in_ms": fakeExpiryMs})
	for ctx.Err() == nil {
		s.changed.Wait()
	}
}

func (s *fakeState) feed(c call, w http.ResponseWriter, ctx context.Context) {
	at := len(s.events)
	if since := c.query.Get("since"); since != "" {
		at, _ = strconv.Atoi(since)
	}
	if at < s.compacted {
		problemReply(410, "feed_compacted", map[string]any{"oldest": strconv.Itoa(s.compacted)}).send(w)
		return
	}
	stream200(w)
	event(w, "bookmark", strconv.Itoa(at), map[string]any{"id": strconv.Itoa(at), "kind": "bookmark"})
	for ctx.Err() == nil {
		for ; at < len(s.events); at++ {
			one := s.events[at]
			if kinds := c.query.Get("kinds"); kinds == "" || strings.Contains(kinds, one["kind"].(string)) || one["kind"] == "error" {
				event(w, one["kind"].(string), one["id"].(string), one)
			}
		}
		s.changed.Wait()
	}
}

func (s *fakeState) listen(c call, w http.ResponseWriter, ctx context.Context) {
	told := make(chan string, 8)
	s.listeners[c.name] = append(s.listeners[c.name], told)
	stream200(w)
	s.mu.Unlock()
	defer s.mu.Lock()
	for {
		select {
		case message := <-told:
			event(w, "message", "", json.RawMessage(message))
		case <-ctx.Done():
			return
		}
	}
}

func (s *fakeState) publish(c call) reply {
	for _, listener := range s.listeners[c.name] {
		listener <- string(c.body)
	}
	return ok(map[string]any{"delivered": len(s.listeners[c.name])})
}

func (s *fakeState) process(c call) reply {
	if c.method == http.MethodGet && c.name == "" {
		items := []any{}
		for _, one := range s.processes {
			if role := c.query.Get("role"); role == "" || one["role"] == role {
				items = append(items, one)
			}
		}
		return ok(map[string]any{"items": items, "next": nil})
	}
	if c.method == http.MethodPut {
		entry := map[string]any{}
		_ = json.Unmarshal(c.body, &entry)
		entry["id"] = c.name
		s.processes[c.name] = entry
		return ok(entry)
	}
	entry := s.processes[c.name]
	if entry == nil {
		return problemReply(404, "not_found", nil)
	}
	if c.method == http.MethodDelete {
		delete(s.processes, c.name)
	}
	return ok(entry)
}

// command: `Fly` is no command, `Busy` is refused once and `Lost` is unknown once; all else is applied, once for each
// key.
func (s *fakeState) command(c call) reply {
	if c.header.Get("Content-Type") != typeLines {
		return ok(map[string]any{"index": 1, "epoch": "1.1", "result": json.RawMessage(c.body)})
	}
	var lines strings.Builder
	for _, text := range strings.Split(strings.TrimSpace(string(c.body)), "\n") {
		lines.WriteString(s.line(text).body + "\n")
	}
	return reply{200, lines.String(), map[string]string{"Content-Type": typeLines}}
}

func (s *fakeState) line(text string) reply {
	var asked struct {
		Name string `json:"storage_cmd"`
		Key  string `json:"idempotency_key"`
	}
	_ = json.Unmarshal([]byte(text), &asked)
	if known, found := s.remembered[asked.Key]; found {
		return known
	}
	if asked.Name == "Fly" {
		return problemReply(400, "unknown_command", map[string]any{"status": 400})
	}
	index, _ := strconv.Atoi(s.tell(map[string]any{"kind": "command"}))
	said := ok(map[string]any{"index": index, "epoch": "1.1", "result": asked.Name})
	s.remembered[asked.Key] = said
	switch asked.Name {
	case "Busy":
		return problemReply(503, "no_leader", map[string]any{"status": 503})
	case "Lost":
		return problemReply(504, "outcome_unknown", map[string]any{"status": 504})
	}
	return said
}
