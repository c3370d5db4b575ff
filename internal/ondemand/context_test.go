package ondemand

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
)

// TestContext holds a Context to what a context of package context tells
// after the same steps, whenever it is made.
func TestContext(t *testing.T) {
	errOwn, errOther, errParent := errors.New("own"), errors.New("other"), errors.New("parent's")
	type step func(cancel context.CancelCauseFunc, endParent context.CancelCauseFunc)
	own := func(cancel, _ context.CancelCauseFunc) { cancel(errOwn) }
	other := func(cancel, _ context.CancelCauseFunc) { cancel(errOther) }
	plain := func(cancel, _ context.CancelCauseFunc) { cancel(nil) }
	parent := func(_, end context.CancelCauseFunc) { end(errParent) }
	type key struct{}
	for _, tt := range []struct {
		name  string
		steps []step
	}{
		{"nothing", nil},
		{"cancelled", []step{own}},
		{"cancelled without a cause", []step{plain}},
		{"cancelled twice", []step{own, other}},
		{"without a cause and then with one", []step{plain, other}},
		{"parent", []step{parent}},
		{"parent first", []step{parent, own}},
		{"parent last", []step{own, parent}},
		{"parent between", []step{plain, parent, own}},
	} {
		for made := 0; made <= len(tt.steps)+1; made++ {
			base := context.WithValue(context.Background(), key{}, "v")
			wantParent, endWantParent := context.WithCancelCause(base)
			gotParent, endGotParent := context.WithCancelCause(base)
			want, cancelWant := context.WithCancelCause(wantParent)
			got := &Context{Parent: gotParent}
			var child context.Context // of the context, from when it is made
			ask := func() {
				if child == nil {
					var forget context.CancelFunc
					child, forget = context.WithCancel(got)
					t.Cleanup(forget)
				}
			}
			for i, step := range tt.steps {
				if i == made {
					ask()
				}
				step(cancelWant, endWantParent)
				step(got.Cancel, endGotParent)
			}
			if got.Err() != want.Err() || got.Cause() != context.Cause(want) {
				t.Errorf("%s: after %d steps: %v, %v; want %v, %v", tt.name, made, got.Err(), got.Cause(), want.Err(), context.Cause(want))
			}
			if made > len(tt.steps) && want.Err() == nil && got.Made() {
				t.Errorf("%s: made without being asked for", tt.name)
			}
			ask()
			if got.Err() != want.Err() || context.Cause(got) != context.Cause(want) || child.Err() != want.Err() || context.Cause(child) != context.Cause(want) {
				t.Errorf("%s: made after %d steps: %v, %v, its child %v, %v; want %v, %v", tt.name, made,
					got.Err(), context.Cause(got), child.Err(), context.Cause(child), want.Err(), context.Cause(want))
			}
			if closed(got) != (want.Err() != nil) {
				t.Errorf("%s: made after %d steps: Done is closed: %v", tt.name, made, closed(got))
			}
			if got.Value(key{}) != "v" {
				t.Errorf("%s: made after %d steps: no value", tt.name, made)
			}
			cancelWant(nil)
			got.Cancel(nil)
			endWantParent(nil)
			endGotParent(nil)
		}
	}
}

// TestContextRace: whoever looks while a context is cancelled, and its parent
// ends, sees one end with one cause.
func TestContextRace(t *testing.T) {
	errOwn, errParent := errors.New("own"), errors.New("parent's")
	for range 500 {
		parent, end := context.WithCancelCause(context.Background())
		l := &Context{Parent: parent}
		causes := make(chan error, 3)
		var all sync.WaitGroup
		for _, do := range []func(){
			func() { l.Cancel(errOwn) },
			func() { end(errParent) },
			func() { <-l.Done(); causes <- context.Cause(l) },
			func() {
				child, forget := context.WithCancel(l)
				defer forget()
				<-child.Done()
				causes <- context.Cause(child)
			},
			func() {
				for l.Err() == nil {
					runtime.Gosched()
				}
				causes <- l.Cause()
			},
		} {
			all.Go(do)
		}
		all.Wait()
		want := context.Cause(l)
		for range 3 {
			if got := <-causes; got != want || got != errOwn && got != errParent {
				t.Fatalf("cause %v, and %v in the end", got, want)
			}
		}
	}
}

func closed(c context.Context) bool {
	select {
	case <-c.Done():
		return true
	default:
		return false
	}
}
