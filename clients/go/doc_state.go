package eldest

import (
	"context"
	"encoding/json"
	"errors"
	"time"
)

// Each failed try means that another writer succeeded: so many in a row is a crowd that needs another design.
const triesMost = 16

// Doc is a document with many writers, as a value of T. It is changed only by compare-and-swap, so no change is lost. T
// is read and written as JSON: for numbers whose digits matter, use an integer type, a json.Number or a
// json.RawMessage.
type Doc[T any] struct {
	docs    *Docs
	key     string
	initial T
	clock   clock
}

// DocOf returns the document under this key; initial is its value while it does not exist.
func DocOf[T any](c *Client, key string, initial T) *Doc[T] {
	return &Doc[T]{docs: c.Docs, key: key, initial: initial, clock: c.transport.clock}
}

// Get reads the value and its revision. If the document does not exist, it returns the initial value and no revision.
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

// copyOf copies the value, because a change must not alter the initial one.
func (d *Doc[T]) copyOf(value T) (T, error) {
	var copied T
	text, err := encode(value)
	if err == nil {
		err = json.Unmarshal(text, &copied)
	}
	return copied, err
}

// Put writes only if the document still has the revision that was read, or, with no revision, only if it does not
// exist. Otherwise it returns ErrConflict. With IfRole it writes in the name of a role: this protects data that one
// leader at a time writes from a leader that was replaced and does not know it yet.
func (d *Doc[T]) Put(ctx context.Context, value T, rev string, options ...WriteOption) (string, error) {
	condition := IfAbsent()
	if rev != "" {
		condition = IfRev(rev)
	}
	written, err := d.docs.Put(ctx, d.key, value, append([]WriteOption{condition}, options...)...)
	return written.Rev, err
}

// ErrKeep is returned by a change that wants nothing to be written; Update then returns no error.
var ErrKeep = errors.New("nothing is to be written")

// Update writes the value that change returns. If another writer came first, it reads and calls change again, 16 times
// at most, then returns ErrConflict. It returns the value that is stored then. After ErrIndeterminate the change may or
// may not be there: read before you repeat it.
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

// Delete deletes the document if it has that revision.
func (d *Doc[T]) Delete(ctx context.Context, rev string, options ...WriteOption) error {
	return d.docs.Delete(ctx, d.key, append([]WriteOption{IfRev(rev)}, options...)...)
}
