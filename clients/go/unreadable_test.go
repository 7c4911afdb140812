package eldest

import (
	"encoding/json"
	"strings"
	"testing"
)

// unreadable are values that a cluster accepted before it refused them, and that encoding/json does not read, or reads
// as another text.
func unreadable() []string {
	digits := strings.Repeat("7", 5000)
	return []string{"1e400", `[-1E400]`, digits, `"\ud800"`, `{"$serde_json::private::RawValue":1}`}
}

func TestNoReaderStopsAtAValueThatCannotBeRead(t *testing.T) {
	_, client := fakeOf(t, 1)
	feed, _ := feedOf(t, client, FeedOptions{Kinds: []string{"change"}})
	for _, sent := range unreadable() {
		values := []string{"1.50", sent, "[3]"}
		for n, value := range values {
			_, err := client.Docs.Put(ctx, "k"+string(rune('0'+n)), json.RawMessage(value))
			must(t, err)
		}
		found, err := client.Docs.Get(ctx, "k1", "")
		must(t, err)
		equal(t, string(found.Value), sent)
		var listed, told []string
		must(t, client.Docs.All(ctx, "k", func(doc Document) error {
			listed = append(listed, string(doc.Value))
			return nil
		}))
		equal(t, listed, values)
		for range values {
			told = append(told, string(next(t, feed).Value))
		}
		equal(t, told, values)
	}
}

func TestAValueThatCannotBeReadIsAnErrorOfItsOwn(t *testing.T) {
	cluster, client := fakeOf(t, 1)
	_, err := client.Docs.Put(ctx, "k", json.RawMessage("1e400"))
	must(t, err)
	found, err := client.Docs.Get(ctx, "k", "")
	must(t, err)
	var value any
	equal(t, found.Decode(&value) != nil, true)
	cluster.faults(fault{status: 200, body: `{"items":[{"id":"p","identifier":"i","channel":"c","metadata":1e400}],"next":null}`})
	all, err := client.Processes.All(ctx, Filter{})
	must(t, err)
	equal(t, string(all[0].Metadata), "1e400")
}
