// Command seed writes sessions into the log of a gateway, for measurements: so many, with so many records each.
//
//	go run ./internal/test/seed DIR SESSIONS RECORDS
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"

	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/engine/sqlite"
	"github.com/goacp/acp/cmd/acp/internal/gateway"
	"github.com/goacp/acp/cmd/acp/internal/identity"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "seed:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) (err error) {
	if len(args) != 3 {
		return errors.New("want a directory and two numbers")
	}
	sessions, err1 := strconv.Atoi(args[1])
	records, err2 := strconv.Atoi(args[2])
	if err := errors.Join(err1, err2, os.MkdirAll(args[0], 0o700)); err != nil {
		return err
	}
	log, err := sqlite.Open(ctx, args[0], "seed", engine.Options{Says: gateway.Says})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	lease, err := log.Lease(ctx, "seed")
	if err != nil {
		return err
	}
	const writers = 32 // so that a commit is for many
	work := make(chan int)
	errs := make(chan error, writers)
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for i := range work {
				if err := write(ctx, log, lease, i, records); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	for i := range sessions {
		select {
		case work <- i:
		case err := <-errs:
			close(work)
			wg.Wait()
			return err
		}
	}
	close(work)
	wg.Wait()
	select {
	case err := <-errs:
		return err
	default:
	}
	return lease.Release(ctx)
}

// write writes a session.
func write(ctx context.Context, log *engine.Engine, lease *engine.Lease, i, n int) error {
	id := fmt.Sprintf("s_seed%06d", i)
	if _, err := log.Create(ctx, engine.Session{
		ID: id, Agent: "seed", Cwd: "/tmp", Owner: identity.CurrentUser(), State: "idle", Title: fmt.Sprint("session ", i), Attributes: []byte("{}"),
	}); err != nil {
		return err
	}
	own, err := log.Claim(ctx, id, lease)
	if err != nil {
		return err
	}
	var all []engine.Record
	for k := range n {
		all = append(all, engine.Record{Kind: "update", Data: fmt.Appendf(nil, `{"update":{"sessionUpdate":"agent_message_chunk","messageId":"1.m","content":{"type":"text","text":"%d 0 %0480d"}}}`, k, 0)})
	}
	if _, err := own.Append(ctx, all...); err != nil {
		return err
	}
	return own.Release(ctx)
}
