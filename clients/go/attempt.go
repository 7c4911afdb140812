package eldest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

const (
	// The biggest answer is a page of 4 MiB; a multiple of it, in case that limit rises.
	answerBytesMost = 32 << 20

	typeJSON  = "application/json"
	typeLines = "application/x-ndjson"

	// A holder shows its secret in this header, so that no other client speaks for it.
	secretHeader = "Eldest-Secret"
)

// spec is a call as the rest of the library describes it.
type spec struct {
	method string
	path   string
	query  url.Values
	header map[string]string
	// body is written as JSON; lines are sent as they are, as a stream of commands.
	body  any
	lines []byte

	// keyed: the write happens once, under this key or a random one.
	keyed bool
	key   string
	// shown: the call carries the client's secret, unless the header has another one.
	shown bool
	// once: a lost attempt is not repeated.
	once bool
	// ofLease: the call keeps something alive, and uses separate connections.
	ofLease bool

	// wait is how long the cluster may keep the call; zero for patience and attempt means the client's values.
	wait, patience, attempt time.Duration
}

// prepared is the same for all attempts of a call.
type prepared struct {
	method, target, key string
	header              http.Header
	body                []byte
	write               bool
	client              *http.Client
}

func (p *prepared) name() string { return p.method + " " + p.target }

func (t *transport) prepare(s spec) (*prepared, error) {
	p := &prepared{method: s.method, target: s.path, header: http.Header{}, client: t.calls}
	if p.method == "" {
		p.method = http.MethodGet
	}
	p.write = p.method != http.MethodGet
	if len(s.query) > 0 {
		p.target += "?" + s.query.Encode()
	}
	if s.ofLease {
		p.client = t.leases
	}
	if s.wait > 0 {
		p.client = t.waits
	}
	if s.shown {
		p.header.Set(secretHeader, t.secret)
	}
	for name, value := range s.header {
		p.header.Set(name, value)
	}
	if t.token != "" {
		p.header.Set("Authorization", "Bearer "+t.token)
	}
	if s.keyed {
		p.key = s.key
		if p.key == "" {
			p.key = randomID()
		}
		p.header.Set("Idempotency-Key", p.key)
	}
	return p, p.setBody(s)
}

func (p *prepared) setBody(s spec) error {
	if s.lines != nil {
		p.body = s.lines
		p.header.Set("Content-Type", typeLines)
		return nil
	}
	if s.body == nil {
		return nil
	}
	text, err := encode(s.body)
	if err != nil {
		return fmt.Errorf("eldest: %s: %w", p.name(), err)
	}
	p.body = text
	p.header.Set("Content-Type", typeJSON)
	return nil
}

// encode writes JSON on one line, and escapes no character that may stand as it is.
func encode(value any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}

// kind is what an attempt showed.
type kind int

const (
	answered kind = iota
	// final: the same call would meet the same error again.
	final
	// refused: surely not applied; another node may accept the call.
	refused
	// unknown: the call may have been applied.
	unknown
	// unsent: no byte of the call has left.
	unsent
)

type outcome struct {
	kind   kind
	answer answer
	err    error
}

// try makes one attempt at one node.
func (t *transport) try(outer context.Context, at int, p *prepared, most time.Duration, watched bool) outcome {
	ctx, cancel := context.WithCancel(outer)
	defer cancel()
	var late, silent atomic.Bool
	stop := t.clock.after(most, func() { late.Store(true); cancel() })
	defer stop()
	if watched {
		go t.watch(ctx, at, func() { silent.Store(true); cancel() })
	}
	response, sent, err := send(ctx, p.client, t.bases[at], p)
	if err == nil {
		var got outcome
		got, err = read(response, p)
		if err == nil {
			return got
		}
	}
	if silent.Load() && outer.Err() == nil {
		err = fmt.Errorf("%s does not even say that it lives", t.bases[at])
	} else if late.Load() && outer.Err() == nil {
		err = fmt.Errorf("%s: no answer in %v", t.bases[at], most.Round(time.Millisecond))
	}
	if !sent {
		return outcome{kind: unsent, err: err}
	}
	return outcome{kind: unknown, err: err}
}

// send also returns whether any byte may have left: a connection was made, its handshake is over, and it was given to
// this request.
func send(ctx context.Context, client *http.Client, base string, p *prepared) (*http.Response, bool, error) {
	var sent atomic.Bool
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { sent.Store(true) }}
	var body io.Reader
	if p.body != nil {
		body = bytes.NewReader(p.body)
	}
	request, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, trace), p.method, base+p.target, body)
	if err != nil {
		return nil, false, err
	}
	for name, values := range p.header {
		request.Header[name] = values
	}
	response, err := client.Do(request)
	return response, sent.Load(), err
}

// read reads an answer. An error means that the answer broke off.
func read(response *http.Response, p *prepared) (outcome, error) {
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, answerBytesMost+1))
	if err != nil {
		return outcome{}, err
	}
	if len(body) > answerBytesMost {
		return outcome{kind: final, err: badAnswer("%s: more than %d bytes", p.name(), answerBytesMost)}, nil
	}
	status := response.StatusCode
	ok := status >= 200 && status < 300
	if !ok && status != http.StatusNotModified {
		return refusal(status, body, p), nil
	}
	if !isJSON(body, response.Header.Get("Content-Type")) {
		return outcome{kind: unknown, err: badAnswer("%s: no JSON", p.name())}, nil
	}
	return outcome{kind: answered, answer: answer{status: status, header: response.Header, body: body}}, nil
}

// The caller reads the lines of a stream one by one.
func isJSON(body []byte, contentType string) bool {
	return len(body) == 0 || strings.HasPrefix(contentType, typeLines) || json.Valid(body)
}

func refusal(status int, body []byte, p *prepared) outcome {
	problem := problemOf(status, body)
	if problem == nil {
		// This may come from a gateway, so it says nothing about a write.
		err := badAnswer("%s: status %d without a problem document", p.name(), status)
		if status >= 500 || status == http.StatusTooManyRequests {
			return outcome{kind: unknown, err: err}
		}
		return outcome{kind: final, err: err}
	}
	switch {
	case status == http.StatusMisdirectedRequest, status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable:
		return outcome{kind: refused, err: problem}
	case status >= 500 && status != http.StatusInsufficientStorage:
		return outcome{kind: unknown, err: problem}
	}
	return outcome{kind: final, err: problem}
}
