package stream

import (
	"context"
	"errors"
	"io"
	"time"
)

// errStalled is why a request that stalled was cancelled.
var errStalled = errors.New("nothing came for too long")

// A watch is a reader that cancels a request when nothing comes for too long. Any byte
// counts, also that of a keep-alive, and only the time of waiting: what is done with the
// bytes may take as long as it likes.
type watch struct {
	r      io.Reader
	limit  time.Duration
	cancel context.CancelCauseFunc
	timer  *time.Timer
}

func (w *watch) begin() {
	if w.timer == nil {
		w.timer = time.AfterFunc(w.limit, func() { w.cancel(errStalled) })
		return
	}
	w.timer.Reset(w.limit)
}

func (w *watch) end() { w.timer.Stop() }

// Read reads what has come.
func (w *watch) Read(p []byte) (int, error) {
	w.begin()
	defer w.end()
	return w.r.Read(p)
}
