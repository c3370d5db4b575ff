package conformance

import "strings"

// evidence is the frames of a scenario, the last ones if there are many.
type evidence struct {
	first []Seen
	last  []Seen
}

func (e *evidence) add(out bool, data []byte) {
	s := Seen{Out: out, Data: shorten(data)}
	if len(e.first) < maxSeen/2 {
		e.first = append(e.first, s)
		return
	}
	if len(e.last) == maxSeen/2 {
		e.last = append(e.last[:0], e.last[1:]...)
	}
	e.last = append(e.last, s)
}

func shorten(data []byte) string {
	if len(data) > maxSeenData {
		return strings.ToValidUTF8(string(data[:maxSeenData]), "\ufffd") + "…"
	}
	return strings.ToValidUTF8(string(data), "\ufffd")
}
