package trace

// A pending is a request without an answer yet.
type pending struct {
	method  string
	session string
	at      int64 // time in ns
}

// maxPending bounds the pending requests of each side. Beyond it the oldest is forgotten.
const maxPending = 4096

// pendings are the pending requests of one side. order has their ids, oldest first, and may also
// contain ids that were answered.
type pendings struct {
	byID  map[string]pending
	order []string
}

// addRequest adds a request and reports whether one was forgotten, which then counts as unanswered.
func (p *pendings) addRequest(id []byte, q pending) (forgot bool) {
	if p.byID == nil {
		p.byID = map[string]pending{}
	}
	key := string(id)
	if len(key) > 1024 {
		return true
	}
	if _, ok := p.byID[key]; ok {
		p.byID[key] = q
		return true
	}
	for len(p.byID) >= maxPending && len(p.order) > 0 {
		delete(p.byID, p.order[0])
		p.order = p.order[1:]
		forgot = true
	}
	if len(p.order) >= 2*maxPending { // at least half of these ids were answered
		kept := p.order[:0:0]
		for _, old := range p.order {
			if _, ok := p.byID[old]; ok {
				kept = append(kept, old)
			}
		}
		p.order = kept
	}
	p.byID[key] = q
	p.order = append(p.order, key)
	return forgot
}

// takeRequest removes and returns the request that an answer belongs to.
func (p *pendings) takeRequest(id []byte) (pending, bool) {
	q, ok := p.byID[string(id)]
	if ok {
		delete(p.byID, string(id))
	}
	return q, ok
}
