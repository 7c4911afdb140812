package eldest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

const (
	// A message is at most 1 MiB of JSON on one line; anything longer than this is no event.
	frameBytesMost = 8 << 20
	// A node sends a sign of life after every 5 s of silence. After three times that long the node is as good as dead.
	silence = 15 * time.Second
)

// errBroken: the node was silent for too long, or ended the stream.
var errBroken = errors.New("the stream broke")

// frame is one server-sent event.
type frame struct {
	event, id string
	data      []byte
}

// object reads the frame's JSON into a value.
func (f frame) object(into any) error {
	if err := json.Unmarshal(f.data, into); err != nil {
		return badAnswer("the event %q: %v", f.event, err)
	}
	return nil
}

// frames reads server-sent events. Nothing is queued: a reader that does not ask for the next one holds the connection
// back, and the node ends it with `too_slow` when it has to.
type frames struct {
	told   chan frame
	broken chan error
	heard  chan struct{}
	clock  clock
}

// newFrames reads from body until it ends or ctx does; then the caller closes the body.
func newFrames(ctx context.Context, body io.Reader, c clock) *frames {
	f := &frames{told: make(chan frame), broken: make(chan error, 1), heard: make(chan struct{}, 1), clock: c}
	go func() { f.broken <- f.pump(ctx, bufio.NewReaderSize(body, 16<<10)) }()
	return f
}

// next returns the next event, or the reason of the end: errBroken, or the end of ctx. It does not close the stream
// after a silence.
func (f *frames) next(ctx context.Context) (frame, error) {
	for {
		got, heard, err := f.wait(ctx)
		if !heard || err != nil {
			return got, err
		}
	}
}

// wait also returns at a sign of life; each one restarts the time of silence.
func (f *frames) wait(ctx context.Context) (got frame, heard bool, err error) {
	silent := make(chan struct{})
	cancel := f.clock.after(silence, func() { close(silent) })
	defer cancel()
	select {
	case got = <-f.told:
		return got, false, nil
	case err = <-f.broken:
		f.broken <- err
		return frame{}, false, err
	case <-f.heard:
		return frame{}, true, nil
	case <-silent:
		return frame{}, false, fmt.Errorf("%w: nothing heard for %v", errBroken, silence)
	case <-ctx.Done():
		return frame{}, false, ctx.Err()
	}
}

func (f *frames) pump(ctx context.Context, reader *bufio.Reader) error {
	var next frame
	size := 0
	for {
		line, err := lineOf(reader)
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("%w: the node ended it", errBroken)
		}
		if err != nil {
			return brokenBy(err)
		}
		select {
		case f.heard <- struct{}{}:
		default:
		}
		if size += len(line); size > frameBytesMost {
			return badAnswer("an event without an end")
		}
		if line != "" {
			next.add(line)
			continue
		}
		if next.data != nil {
			select {
			case f.told <- next:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		next, size = frame{}, 0
	}
}

func (f *frame) add(line string) {
	name, value, _ := strings.Cut(line, ":")
	value = strings.TrimPrefix(value, " ")
	switch name {
	case "data":
		if f.data != nil {
			f.data = append(f.data, '\n')
		}
		f.data = append(f.data, value...)
		if f.data == nil {
			f.data = []byte{}
		}
	case "event":
		f.event = value
	case "id":
		f.id = value
	}
}

// lineOf reads one line without its end. Text after the last end of line is not a line.
func lineOf(reader *bufio.Reader) (string, error) {
	var line []byte
	for {
		piece, err := reader.ReadSlice('\n')
		line = append(line, piece...)
		if err == nil {
			return strings.TrimRight(string(line), "\r\n"), nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return "", err
		}
		if len(line) > frameBytesMost {
			return "", badAnswer("a line without an end")
		}
	}
}

// brokenBy: after a frame that no node sends, another attempt is not worth it.
func brokenBy(err error) error {
	if errors.Is(err, ErrBadAnswer) {
		return err
	}
	return fmt.Errorf("%w: %v", errBroken, err)
}
