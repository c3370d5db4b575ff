package gateway

import "github.com/goacp/acp/cmd/acp/internal/records"

// hasten has the log know how far it is, if that is far from what it knows: the agent may wait for it.
func (hs *heldStream) hasten() {
	marked := hs.watermark()
	hs.mu.Lock()
	far := !hs.hastens && (marked > hs.marked+maxUnmarked || marked > hs.marked && hs.bytes > maxUnmarkedBytes)
	hs.hastens = hs.hastens || far
	hs.mu.Unlock()
	if !far {
		return
	}
	over := func(marked uint64, err error) {
		hs.mu.Lock()
		hs.hastens = false
		hs.mu.Unlock()
		if err == nil {
			hs.mark(marked)
			hs.hasten()
		}
	}
	hs.s.g.work.Go(func() { // the writer may be who calls, and must not wait for itself
		marked := hs.watermark()
		hs.mu.Lock()
		if marked == hs.last {
			hs.bytes = 0
		}
		hs.mu.Unlock()
		err := hs.s.log.put(hs.s.ctx, kindMark, encode(records.Stamp{Marked: marked}), func(_ uint64, err error) { over(marked, err) })
		if err != nil {
			over(0, err)
		}
	})
}
