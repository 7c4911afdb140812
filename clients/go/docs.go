package eldest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"time"
)

// Docs are documents: any JSON up to 1 MiB under a key.
type Docs struct{ transport *transport }

// Document is one document. Its Value is the JSON as it is stored, so that numbers keep their digits; Rev is opaque.
type Document struct {
	Key   string          `json:"key"`
	Value json.RawMessage `json:"value"`
	Rev   string          `json:"rev"`
}

// Decode unmarshals the value.
func (d Document) Decode(into any) error { return json.Unmarshal(d.Value, into) }

// WriteOption is a condition of a write, or says when the document ends.
type WriteOption func(*write) error

type write struct {
	spec
	conditions int
}

// IfRev: write only if the document has this revision; otherwise ErrConflict.
func IfRev(rev string) WriteOption {
	return func(w *write) error {
		if rev == "" {
			return errors.New("eldest: a condition on no revision would be none at all")
		}
		if err := visible("rev", rev); err != nil {
			return err
		}
		w.conditions++
		w.header["If-Match"] = `"` + rev + `"`
		return nil
	}
}

// IfAbsent: write only if the document does not exist; otherwise ErrConflict.
func IfAbsent() WriteOption {
	return func(w *write) error {
		if w.method != http.MethodPut {
			return errors.New("eldest: only a Put can depend on there being no document")
		}
		w.conditions++
		w.header["If-None-Match"] = "*"
		return nil
	}
}

// IfRole: write only while the role is held under this token; otherwise ErrRoleNotHeld. So a holder that was replaced,
// and does not know it yet, changes nothing, no matter which revision it has read. It can be combined with IfRev or
// IfAbsent.
func IfRole(role string, token uint64) WriteOption {
	return func(w *write) error {
		if w.method == http.MethodPost {
			return errors.New("eldest: only a Put or a Delete is made in the name of a role")
		}
		// For example, an election that does not lead any more has no token.
		if token == 0 {
			return fmt.Errorf("eldest: %s: no token: %w", role, ErrRoleNotHeld)
		}
		name, err := segment(role, "role")
		w.header["If-Role"] = name + "; token=" + strconv.FormatUint(token, 10)
		return err
	}
}

// EndsAfter: the document ends if it is not written or renewed for this long: 1 s to 24 h.
func EndsAfter(ttl time.Duration) WriteOption {
	return func(w *write) error {
		w.query.Set("ttl_ms", strconv.FormatInt(millis(ttl), 10))
		return nil
	}
}

// EndsWithRole: the document ends with the lease of the role under this token.
func EndsWithRole(role string, token uint64) WriteOption {
	return func(w *write) error {
		w.query.Set("with", "role/"+role)
		w.query.Set("token", strconv.FormatUint(token, 10))
		w.shown = true
		return nil
	}
}

// EndsWithProcess: the document ends with the registration of the process.
func EndsWithProcess(id string) WriteOption {
	return func(w *write) error {
		w.query.Set("with", "process/"+id)
		w.shown = true
		return nil
	}
}

// LeaseSecret is the secret of the lease that the document ends with, if another client was granted it. For its own
// leases a client shows its own secret.
func LeaseSecret(secret string) WriteOption {
	return func(w *write) error {
		w.header[secretHeader] = secret
		return visible("secret", secret)
	}
}

// Key repeats the call that an Indeterminate is about, under its IdempotencyKey. Everything else of the call must be
// the same.
func Key(key string) WriteOption {
	return func(w *write) error {
		w.key = key
		return visible("key", key)
	}
}

var etag = regexp.MustCompile(`^(?:W/)?"(.*)"$`)

// Get reads a document, or returns ErrNotFound.
func (d *Docs) Get(ctx context.Context, key string, level Level) (Document, error) {
	name, err := segment(key, "key")
	if err != nil {
		return Document{}, err
	}
	got, err := d.transport.do(ctx, spec{path: "/v1/docs/" + name, query: Page{Level: level}.query()})
	if err != nil {
		return Document{}, err
	}
	rev := etag.FindStringSubmatch(got.header.Get("Etag"))
	if rev == nil {
		return Document{}, badAnswer("%s: a document without an ETag", key)
	}
	return Document{Key: key, Value: got.body, Rev: rev[1]}, nil
}

// Written is the result of a Put.
type Written struct {
	Key     string `json:"key"`
	Rev     string `json:"rev"`
	Created bool   `json:"created"`
}

// Put writes a document. It stays until it is deleted, unless an option says when it ends; each write sets that again.
func (d *Docs) Put(ctx context.Context, key string, value any, options ...WriteOption) (Written, error) {
	if value == nil {
		value = json.RawMessage("null")
	}
	var written Written
	got, err := d.write(ctx, spec{method: http.MethodPut, body: value, keyed: true}, key, options)
	if err == nil {
		err = object(got, "document", &written)
	}
	if err == nil && written.Rev == "" {
		err = badAnswer("%s: a document without a revision", key)
	}
	return written, err
}

// Delete deletes a document, or returns ErrNotFound.
func (d *Docs) Delete(ctx context.Context, key string, options ...WriteOption) error {
	_, err := d.write(ctx, spec{method: http.MethodDelete, keyed: true}, key, options)
	return err
}

// Renew returns how long a document that ends by itself will now live; ErrNotFound if it has ended.
func (d *Docs) Renew(ctx context.Context, key string, options ...WriteOption) (time.Duration, error) {
	got, err := d.write(ctx, spec{method: http.MethodPost, query: url.Values{"renew": {"true"}}, ofLease: true}, key, options)
	if err != nil {
		return 0, err
	}
	var said struct {
		ExpiresIn json.RawMessage `json:"expires_in_ms"`
	}
	if err := object(got, "document", &said); err != nil {
		return 0, err
	}
	return spanOf(said.ExpiresIn, "document")
}

func (d *Docs) write(ctx context.Context, s spec, key string, options []WriteOption) (answer, error) {
	name, err := segment(key, "key")
	if err != nil {
		return answer{}, err
	}
	s.path = "/v1/docs/" + name
	s.header = map[string]string{}
	if s.query == nil {
		s.query = url.Values{}
	}
	w := write{spec: s}
	for _, option := range options {
		if err := option(&w); err != nil {
			return answer{}, err
		}
	}
	if w.conditions > 1 {
		return answer{}, fmt.Errorf("eldest: %s: a write depends on one condition", key)
	}
	return d.transport.do(ctx, w.spec)
}

// List returns a page of documents, by key, and where the next page begins: empty after the last.
func (d *Docs) List(ctx context.Context, wanted Page) ([]Document, string, error) {
	got, err := d.transport.do(ctx, spec{path: "/v1/docs", query: wanted.query()})
	if err != nil {
		return nil, "", err
	}
	return page[Document](got, "documents")
}

// All calls each for every document whose key begins with prefix, page by page.
func (d *Docs) All(ctx context.Context, prefix string, each func(Document) error) error {
	return every(func(after string) ([]Document, string, error) { return d.List(ctx, Page{Prefix: prefix, After: after}) }, each)
}

// every calls each for all items of all pages, until one call returns an error.
func every[T any](page func(after string) ([]T, string, error), each func(T) error) error {
	for after := ""; ; {
		items, next, err := page(after)
		if err != nil {
			return err
		}
		for _, item := range items {
			if err := each(item); err != nil {
				return err
			}
		}
		if next == "" {
			return nil
		}
		after = next
	}
}
