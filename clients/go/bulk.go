package eldest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// Command is one write of the state, as docs/http-api.md lists them: PutDoc, CreateUser and so on.
type Command struct {
	Name    string `json:"storage_cmd"`
	Payload any    `json:"payload"`
}

// Done is the outcome of a command (Result) or of a batch (Results).
type Done struct {
	Index   uint64            `json:"index"`
	Epoch   string            `json:"epoch"`
	Result  json.RawMessage   `json:"result"`
	Results []json.RawMessage `json:"results"`
}

// Command applies one command.
func (c *Client) Command(ctx context.Context, command Command) (Done, error) {
	return c.commands(ctx, command)
}

// Batch applies all commands or none.
func (c *Client) Batch(ctx context.Context, commands []Command) (Done, error) {
	return c.commands(ctx, commands)
}

func (c *Client) commands(ctx context.Context, body any) (Done, error) {
	var done Done
	got, err := c.transport.do(ctx, spec{method: http.MethodPost, path: "/v1/commands", body: body, keyed: true})
	if err == nil {
		err = object(got, "commands", &done)
	}
	return done, err
}

const (
	// A node decides this many at once. More would only wait there, and would be sent again if one of them has to be.
	linesMost     = 1024
	lineBytesMost = 1 << 20
)

// Told is the outcome of one command of many: Done, or Err.
type Told struct {
	Done
	Err error
}

type line struct {
	place int
	text  []byte
	// unknown: an attempt may have been carried out.
	unknown bool
	last    error
}

var errNotSent = errors.New("it was not sent")

// Bulk applies each command by itself, in order, and returns the outcome of each. A refused command does not stop those
// after it, and one that has to be retried may come after some that follow it. They travel a thousand at a time, and
// each thousand has the time of one call; once that has run out, nothing more is sent.
func (c *Client) Bulk(ctx context.Context, commands []Command) ([]Told, error) {
	told := make([]Told, len(commands))
	for i := range told {
		told[i].Err = &Unavailable{Call: "the command", Cause: errNotSent}
	}
	chunks, err := chunked(commands)
	if err != nil {
		return nil, err
	}
	for _, chunk := range chunks {
		left := c.bulkOf(ctx, chunk, told)
		for _, line := range left {
			told[line.place].Err = line.givenUp()
		}
		if len(left) > 0 {
			return told, ctx.Err()
		}
	}
	return told, nil
}

// chunked draws a key for each command, so that it happens once.
func chunked(commands []Command) ([][]*line, error) {
	var chunks [][]*line
	size := 0
	for place, command := range commands {
		text, err := encode(struct {
			Command
			Key string `json:"idempotency_key"`
		}{command, randomID()})
		if err != nil {
			return nil, fmt.Errorf("eldest: command %d: %w", place, err)
		}
		last := len(chunks) - 1
		if last < 0 || len(chunks[last]) == linesMost || size+len(text) >= lineBytesMost {
			chunks, size = append(chunks, nil), 0
			last++
		}
		chunks[last] = append(chunks[last], &line{place: place, text: append(text, '\n')})
		size += len(text) + 1
	}
	return chunks, nil
}

// bulkOf sends a chunk until all of it is decided or its time is over, and returns the lines that are not decided.
func (c *Client) bulkOf(ctx context.Context, left []*line, told []Told) []*line {
	t := c.transport
	pauses, end := newBackoff(), t.clock.now()+t.call
	for {
		left = t.sendLines(ctx, left, told)
		pause := pauses.next()
		if len(left) == 0 || ctx.Err() != nil || t.clock.now()+pause >= end {
			return left
		}
		t.clock.rest(ctx, pause, nil)
	}
}

// sendLines sends the lines once more, and returns those that have to be retried.
func (t *transport) sendLines(ctx context.Context, lines []*line, told []Told) []*line {
	var body bytes.Buffer
	for _, line := range lines {
		body.Write(line.text)
	}
	got, err := t.do(ctx, spec{method: http.MethodPost, path: "/v1/commands", lines: body.Bytes()})
	if err != nil {
		return failed(lines, told, err)
	}
	answers := bytes.Split(bytes.TrimSuffix(got.body, []byte("\n")), []byte("\n"))
	var again []*line
	for i, line := range lines {
		var answer []byte
		if i < len(answers) {
			answer = answers[i]
		}
		if !line.settled(answer, &told[line.place]) {
			again = append(again, line)
		}
	}
	return again
}

func failed(lines []*line, told []Told, err error) []*line {
	unknown := errors.Is(err, ErrIndeterminate)
	if !unknown && !errors.Is(err, ErrUnavailable) {
		for _, line := range lines {
			line.last, told[line.place].Err = err, err
			// A refusal of the whole request says nothing about an attempt whose answer did not come.
			if line.unknown {
				told[line.place].Err = line.givenUp()
			}
		}
		return nil
	}
	for _, line := range lines {
		line.unknown = line.unknown || unknown
		line.last = err
	}
	return lines
}

// settled reports whether the answer decides the line. Two do not: a refusal that surely did nothing, and an unknown
// outcome, for which the key makes a retry safe.
func (l *line) settled(answer []byte, told *Told) bool {
	var said struct {
		Done
		Index  *uint64 `json:"index"`
		Status int     `json:"status"`
	}
	if json.Unmarshal(answer, &said) == nil && said.Index != nil {
		told.Done, told.Err = said.Done, nil
		told.Index = *said.Index
		return true
	}
	problem := problemOf(said.Status, answer)
	if problem == nil {
		l.unknown, l.last = true, badAnswer("no answer to this line")
		return false
	}
	l.last = problem
	switch said.Status {
	case http.StatusRequestTimeout, http.StatusMisdirectedRequest, http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return false
	case http.StatusBadGateway, http.StatusGatewayTimeout:
		l.unknown = true
		return false
	}
	told.Err = problem
	return true
}

func (l *line) givenUp() error {
	cause := l.last
	if cause == nil {
		cause = errNotSent
	}
	if l.unknown {
		return &Indeterminate{Call: "the command", Cause: cause}
	}
	return &Unavailable{Call: "the command", Cause: cause}
}
