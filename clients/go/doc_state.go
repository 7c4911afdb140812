package eldest

import (
	"context"
	"encoding/json"
	"errors"
	"time"
)

// Each try that fails means that another writer's went through: so many in a row is a crowd that needs another design.
const triesMost = 16

// Doc is a document that many may write, as a value of T: changed by compare-and-swap alone, so that no change is lost. T is read and written
// as JSON: numbers whose digits matter are of an integer type, a json.Number or a json.RawMessage.
type Doc[T any] struct {
	docs    *Docs
	key     string
	initial T
	clock   clock
}

// DocOf is the document under this key; initial is its value where there is none yet.
func DocOf[T any](c *Client, key string, initial T) *Doc[T] {
	return &Doc[T]{docs: c.Docs, key: key, initial: initial, clock: c.transport.clock}
}

// Get reads the value and its revision; the initial value and no revision where there is no document yet.
func (d *Doc[T]) Get(ctx context.Context) (T, string, error) {
	var value T
	found, err := d.docs.Get(ctx, d.key, "")
	if errors.Is(err, ErrNotFound) {
		value, err = d.copyOf(d.initial)
		return value, "", err
	}
	if err == nil {
		err = json.Unmarshal(found.Value, &value)
	}
	return value, found.Rev, err
}

// copyOf: what a change does to a value must not change the initial one.
func (d *Doc[T]) copyOf(value T) (T, error) {
	var copied T
	text, err := encode(value)
	if err == nil {
		err = json.Unmarshal(text, &copied)
	}
	return copied, err
}

// Put writes over the revision that was read; over none, only if there is no document. Else ErrConflict. With IfRole it is written in the
// name of a role: what one leader at a time writes is safe from one that was replaced and does not know it yet.
func (d *Doc[T]) Put(ctx context.Context, value T, rev string, options ...WriteOption) (string, error) {
	condition := IfAbsent()
	if rev != "" {
		condition = IfRev(rev)
	}
	written, err := d.docs.Put(ctx, d.key, value, append([]WriteOption{condition}, options...)...)
	return written.Rev, err
}

// ErrKeep is what a change returns that is to write nothing: no error, then, for Update.
var ErrKeep = errors.New("nothing is to be written")

// Update writes what change makes of the value, and reads and calls it again where another writer came first: 16 times at most, then it is
// ErrConflict. It returns what stands there then. After ErrIndeterminate the change is there or not: read before you make it once more.
func (d *Doc[T]) Update(ctx context.Context, change func(T) (T, error), options ...WriteOption) (T, error) {
	pauses := &backoff{least: 5 * time.Millisecond, most: 200 * time.Millisecond}
	for tries := 1; ; tries++ {
		value, rev, err := d.Get(ctx)
		if err != nil {
			return value, err
		}
		next, err := change(value)
		if errors.Is(err, ErrKeep) {
			value, _, err = d.Get(ctx)
			return value, err
		}
		if err != nil {
			return value, err
		}
		_, err = d.Put(ctx, next, rev, options...)
		if err == nil || !errors.Is(err, ErrConflict) || tries == triesMost {
			return next, err
		}
		d.clock.rest(ctx, pauses.next(), nil)
	}
}

// Delete deletes the document under that revision.
func (d *Doc[T]) Delete(ctx context.Context, rev string, options ...WriteOption) error {
	return d.docs.Delete(ctx, d.key, append([]WriteOption{IfRev(rev)}, options...)...)
}
