package acptest

import (
	"sync"

	"github.com/goacp/acp/jsonrpc"
)

// A pump reads frames of a stream in a goroutine, each one only when it is
// asked for, so that reading can be waited for together with other things.
type pump struct {
	stream jsonrpc.Stream
	want   chan struct{}
	got    chan pumped
	quit   chan struct{}
	once   sync.Once
	asked  bool // owned by the one who calls ask
}

type pumped struct {
	frame jsonrpc.Frame
	err   error
}

func newPump(s jsonrpc.Stream) *pump {
	p := &pump{stream: s, want: make(chan struct{}, 1), got: make(chan pumped, 1), quit: make(chan struct{})}
	go p.run()
	return p
}

func (p *pump) run() {
	for {
		select {
		case <-p.quit:
			return
		case <-p.want:
		}
		f, err := p.stream.ReadFrame()
		if err == nil && !f.Owned {
			f.Data, f.Owned = append([]byte(nil), f.Data...), true
		}
		p.got <- pumped{f, err} // there is room: nothing was asked for since
	}
}

// ask returns the channel that yields the next frame. After receiving it, call taken
// before asking for another one.
func (p *pump) ask() <-chan pumped {
	if !p.asked {
		p.asked = true
		select {
		case p.want <- struct{}{}:
		case <-p.quit:
		}
	}
	return p.got
}

func (p *pump) taken() { p.asked = false }

// close ends the goroutine. The stream must be closed as well.
func (p *pump) close() { p.once.Do(func() { close(p.quit) }) }
