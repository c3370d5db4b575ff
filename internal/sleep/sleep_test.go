package sleep

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goacp/acp/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// TestFor: the whole time is waited, unless the context ends first, then or before.
func TestFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		if !For(t.Context(), time.Hour) || time.Since(begin) != time.Hour {
			t.Error(time.Since(begin))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begin = time.Now()
		for _, want := range []time.Duration{time.Minute, time.Minute} { // the second is over at once
			if For(ctx, time.Hour) || time.Since(begin) != want {
				t.Error(time.Since(begin))
			}
		}
	})
}
