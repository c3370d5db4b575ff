package acphttp

import (
	"cmp"
	"errors"
	"log/slog"
	"net/http"
	"sync"
)

// An outage notes whether the network of a client fails, and calls a hook when that changes.
type outage struct {
	hook func(err error) // nil: nobody listens
	log  *slog.Logger    // nil means slog.Default

	calls   sync.WaitGroup
	mu      sync.Mutex
	err     error // why it fails; nil while it works
	called  bool  // the hook was called last with an error
	calling bool
	over    bool // the connection has ended: the hook is not called any more
}

// set notes why the network fails, or with nil that it works.
func (o *outage) set(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.err = err
	o.tell()
}

// tell calls the hook if there is something new, on a goroutine of its own: the hook may wait, panic or end its
// goroutine. Calls come one after the other, and what changes during one follows it. The caller holds o.mu.
func (o *outage) tell() {
	err := o.err
	if o.hook == nil || o.calling || o.over || (err != nil) == o.called {
		return
	}
	o.calling, o.called = true, err != nil
	o.calls.Go(func() {
		defer func() {
			if p := recover(); p != nil {
				cmp.Or(o.log, slog.Default()).Error("acphttp: Interrupted panicked", "panic", p)
			}
			o.mu.Lock()
			defer o.mu.Unlock()
			o.calling = false
			o.tell()
		}()
		o.hook(err)
	})
}

// end makes set do nothing. It does not wait for the hook.
func (o *outage) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.over = true
}

// wait waits for the hook, after the end.
func (o *outage) wait() { o.calls.Wait() }

// outageOf returns err if an attempt has failed since the network did, or what is between the client and the server, and
// nil if the server refused it. before is how many attempts failed before this one: a connection that was idle, or a
// stream that has lasted long, may well be closed without an outage.
func outageOf(err error, before int) error {
	if said := (*StatusError)(nil); errors.As(err, &said) {
		if said.Status == http.StatusBadGateway || said.Status == http.StatusGatewayTimeout ||
			said.Status == http.StatusServiceUnavailable && said.RetryAfter == 0 {
			return err
		}
		return nil
	}
	if before > 0 || nothingSent(err) || errors.Is(err, errSilent) || errors.Is(err, errPostTime) {
		return err
	}
	return nil
}
