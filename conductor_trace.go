package acp

import (
	"context"
	"encoding/json"
	"time"
)

// traced returns a link that tells Conductor.Trace what passes.
func (run *chainRun) traced(from, to int, link proxyLink) proxyLink {
	if run.c.Trace == nil {
		return link
	}
	return &tracedLink{run: run, from: from, to: to, link: link}
}

type tracedLink struct {
	run      *chainRun
	from, to int
	link     proxyLink
}

// hop returns a message of the link.
func (l *tracedLink) hop(kind ChainMessageKind, m *proxied) ChainMessage {
	return ChainMessage{
		Time: time.Now(), From: l.run.place(l.from), To: l.run.place(l.to), FromAt: l.from, ToAt: l.to,
		Kind: kind, Method: m.method, Session: SessionID(m.session),
	}
}

// place returns the name of what is at a place of the chain.
func (run *chainRun) place(i int) string {
	if i == 0 {
		return "client"
	}
	return run.names[i-1]
}

func (l *tracedLink) request(ctx context.Context, m proxied) (json.RawMessage, error) {
	h := l.hop(ChainRequest, &m)
	h.ID, h.Params = l.run.ids.Add(1), m.raw()
	l.run.c.Trace(h)
	res, err := l.link.request(ctx, m)
	back := l.hop(ChainResponse, &m)
	back.ID, back.Result, back.Err = h.ID, res, err
	back.From, back.To, back.FromAt, back.ToAt = h.To, h.From, h.ToAt, h.FromAt
	l.run.c.Trace(back)
	return res, err
}

func (l *tracedLink) notify(ctx context.Context, m proxied) error {
	h := l.hop(ChainNotification, &m)
	h.Params = m.raw()
	l.run.c.Trace(h)
	return l.link.notify(ctx, m)
}
