package trace

// A pending is a request that was not answered yet.
type pending struct {
	method  string
	session string
	at      int64 // time in ns
}

// maxPending is how many requests of each side are waited for; beyond it the oldest is forgotten.
const maxPending = 4096

// pendings are the requests of one side.
type pendings struct {
	byID  map[string]pending
	order []string
}

// put notes a request and reports whether another one was forgotten for it.
func (p *pendings) put(id []byte, q pending) (forgot bool) {
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
	if len(p.order) >= 2*maxPending { // most of them were answered
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

// take returns the request that an answer is to.
func (p *pendings) take(id []byte) (pending, bool) {
	q, ok := p.byID[string(id)]
	if ok {
		delete(p.byID, string(id))
	}
	return q, ok
}
