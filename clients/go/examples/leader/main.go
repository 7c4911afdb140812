// One of many instances works, and the next one takes over if it ends or dies. Run it several times:
//
//	ELDEST_URL=http://127.0.0.1:9000,http://127.0.0.2:9000,http://127.0.0.3:9000 go run ./examples/leader
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"eldest.dev/eldest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	client, err := eldest.New(nil)
	if err != nil {
		log.Fatal(err)
	}
	err = client.Lead(ctx, "example/leader", eldest.ElectionOptions{}, cleanUp)
	if err != nil && !errors.Is(err, context.Canceled) {
		log.Fatal(err)
	}
}

// cleanUp works until ctx ends: then this process no longer leads, or has to end.
func cleanUp(ctx context.Context, token uint64) error {
	fmt.Printf("leading with token %d\n", token)
	defer fmt.Println("leading no more")
	work := time.NewTicker(time.Second)
	defer work.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-work.C:
			fmt.Printf("cleaned up, under token %d\n", token)
		}
	}
}
