package eldest

import (
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"time"
)

// Values that are read from answers are checked here: no server can make a program act on a value that is not there.

func object(got answer, what string, into any) error {
	if len(got.body) == 0 || got.body[0] != '{' {
		return badAnswer("%s: no object", what)
	}
	if err := json.Unmarshal(got.body, into); err != nil {
		return badAnswer("%s: %v", what, err)
	}
	return nil
}

// tokensEnd: tokens stay below it in every language.
const tokensEnd = 1 << 53

// tokenOf reads a fencing token: a number, not a string with one.
func tokenOf(number json.RawMessage, what string) (uint64, error) {
	token, err := strconv.ParseUint(string(number), 10, 64)
	if err != nil || token >= tokensEnd {
		return 0, badAnswer("%s: %q is no token", what, number)
	}
	return token, nil
}

// spanOf reads a number of milliseconds.
func spanOf(number json.RawMessage, what string) (time.Duration, error) {
	ms, err := strconv.ParseFloat(string(number), 64)
	if err != nil || !(ms >= 0 && ms < math.MaxInt64/float64(time.Millisecond)) {
		return 0, badAnswer("%s: %q is no span", what, number)
	}
	return time.Duration(ms * float64(time.Millisecond)), nil
}

// segment is one part of a path. URLs lose segments of one or two dots on the way, so no name can be one.
func segment(name, what string) (string, error) {
	if name == "" || name == "." || name == ".." {
		return "", fmt.Errorf("eldest: %s: %q cannot stand in a URL", what, name)
	}
	return url.PathEscape(name), nil
}

func millis(d time.Duration) int64 { return d.Milliseconds() }

// set adds a value unless it is empty.
func set(query url.Values, name, value string) {
	if value != "" {
		query.Set(name, value)
	}
}

// Level says what a read sees.
type Level string

const (
	// Linear sees every write that was acknowledged before it began. It is the default.
	Linear Level = "linear"
	// Local is the node's own state, however old; it works without a leader.
	Local Level = "local"
	// AtLeader is the leader's state, by its lease.
	AtLeader Level = "leader"
)

// Page says which part of a list is read.
type Page struct {
	Prefix string
	// Limit is 100 by default, at most 1,000.
	Limit int
	// After is the next of the page before.
	After string
	Level Level
}

func (p Page) query() url.Values {
	query := url.Values{}
	set(query, "prefix", p.Prefix)
	set(query, "after", p.After)
	set(query, "level", string(p.Level))
	if p.Limit > 0 {
		query.Set("limit", strconv.Itoa(p.Limit))
	}
	return query
}

// page reads one page of a list, and where the next begins: empty after the last.
func page[T any](got answer, what string) ([]T, string, error) {
	var body struct {
		Items *[]T    `json:"items"`
		Next  *string `json:"next"`
	}
	if err := object(got, what, &body); err != nil {
		return nil, "", err
	}
	if body.Items == nil {
		return nil, "", badAnswer("%s: no items", what)
	}
	if body.Next == nil {
		return *body.Items, "", nil
	}
	return *body.Items, *body.Next, nil
}
