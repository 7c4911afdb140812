// Package eldest is the client of an Eldest cluster: elections, locks, a registry of processes, documents, channels and the feed.
//
//	client, err := eldest.New([]string{"http://10.0.0.1:9000", "http://10.0.0.2:9000", "http://10.0.0.3:9000"})
//	err = client.Lead(ctx, "cleanup-worker", eldest.ElectionOptions{}, func(ctx context.Context, token uint64) error {
//		return cleanUp(ctx, token)
//	})
//
// Name all nodes: each accepts every call, and the client goes on at the next one if one is gone.
//
// A holder stops believing before its lease can have ended: it counts from when it sent the last request that was
// answered, less 1 % and 10 ms, by a clock that goes on while the machine sleeps. It may still be late between its
// check and its write: pass the token along, and let the system that is written to refuse a token that is smaller than
// one it has seen.
package eldest
