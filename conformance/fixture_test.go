package conformance

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"

	"github.com/goacp/acp/jsonrpc"
)

// A fixture is a peer with one defect: a good one, with something between it and
// the checker that changes what passes.

// A defect deals with what passes between the checker and a good peer. It gets
// every line, in both directions, and has to pass on what shall arrive. It is
// called by one goroutine at a time.
type defect func(w *between, f *flying)

// agentDefects and clientDefects are the fixtures, by the id of the rule that
// each of them breaks.
var (
	agentDefects  = map[string]defect{}
	clientDefects = map[string]defect{}
)

// defects adds fixtures; test files call it from init. In package variables the compiler would look at all of them as one
// function, which takes it ten seconds.
func defects(side Side, all map[string]defect) {
	to := agentDefects
	if side == Client {
		to = clientDefects
	}
	for id, d := range all {
		id = string(side) + "/" + id
		if to[id] != nil {
			panic("two fixtures for " + id)
		}
		to[id] = d
	}
}

// A flying is a line that is on its way.
type flying struct {
	from   Side // who sent it: the side that is checked is the one with the defect
	line   string
	msg    map[string]any // nil if it is no JSON object
	method string         // of a response, that of its request
	id     string         // as JSON, "" if there is none
	reply  bool           // it is a response
	n      int            // how many of its kind passed before: of the method, in the direction
	bytes  int            // of the line, without its end
	reads  int            // how many reads it took to get the line: 0 if it came along with another one
	cut    bool           // it was the last one and had no line feed
}

func (f *flying) request() bool      { return !f.reply && f.id != "" && f.method != "" }
func (f *flying) notification() bool { return !f.reply && f.id == "" && f.method != "" }

// get returns what is at a path of the message, such as "params.sessionId".
func (f *flying) get(path string) any {
	var v any = f.msg
	for key := range strings.SplitSeq(path, ".") {
		m, _ := v.(map[string]any)
		v = m[key]
	}
	return v
}

// str is get for strings.
func (f *flying) str(path string) string { s, _ := f.get(path).(string); return s }

// between is what stands between the checker and the peer.
type between struct {
	side   Side // of the good peer
	defect defect
	state  map[string]any // for defects that have to remember something
	stay   bool           // the peer does not hear of the end of its input
	undead bool           // the peer's process never ends
	held   bool           // the checker does not hear of the end of the peer's output
	last   func()         // is called when the input of the peer has ended, if it is not nil
	status int            // that the peer's process ends with instead of 0
	leak   int64          // bytes that the peer does not give back
	deaf   bool           // the peer does not read the standard error of the checker
	gone   chan struct{}  // closed when the checker has closed the connection

	mu      sync.Mutex
	methods map[string]string // of requests in flight, by sender and id
	count   map[string]int
	peer    *bufferedPipe // to the peer
	checker *bufferedPipe // to the checker
}

// bufferedPipe writes lines in a goroutine of its own, so that a defect never waits.
type bufferedPipe struct {
	w     io.WriteCloser
	lines chan string
	quit  chan struct{}
	once  sync.Once
}

func newBufferedPipe(w io.WriteCloser) *bufferedPipe {
	p := &bufferedPipe{w: w, lines: make(chan string, 1<<12), quit: make(chan struct{})}
	go func() {
		defer func() { _ = w.Close() }()
		broken := false
		write := func(line string) {
			if !broken {
				_, err := io.WriteString(w, line)
				broken = err != nil
			}
		}
		for {
			select {
			case line := <-p.lines:
				write(line)
				continue
			case <-p.quit:
			}
			for { // what was given before the end
				select {
				case line := <-p.lines:
					write(line)
				default:
					return
				}
			}
		}
	}()
	return p
}

// write gives a line to the writer; behind close it is lost.
func (p *bufferedPipe) write(s string) {
	select {
	case <-p.quit:
		return
	default:
	}
	select {
	case p.lines <- s:
	case <-p.quit:
	}
}
func (p *bufferedPipe) close() { p.once.Do(func() { close(p.quit) }) }

// pass lets a line go on.
func (w *between) pass(f *flying) { w.on(f, f.line) }

// passMsg lets the message go on as it has become.
func (w *between) passMsg(f *flying) { w.on(f, encode(f.msg)) }

// on sends a line where f goes.
func (w *between) on(f *flying, line string) {
	if f.from == w.side {
		w.checker.write(line + "\n")
	} else {
		w.peer.write(line + "\n")
	}
}

// back sends a line where f comes from.
func (w *between) back(f *flying, line string) {
	if f.from == w.side {
		w.peer.write(line + "\n")
	} else {
		w.checker.write(line + "\n")
	}
}

// cut ends what the checker hears, as a peer does that goes away.
func (w *between) cut() { w.checker.close() }

func encode(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// decode reads JSON; numbers keep their spelling.
func decode(text string) (v any) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return nil
	}
	return v
}

// fly makes a flying of a line.
func (w *between) fly(from Side, line string) *flying {
	f := &flying{from: from, line: line, bytes: len(line)}
	f.msg, _ = decode(line).(map[string]any)
	if id, ok := f.msg["id"]; ok {
		f.id = encode(id)
	}
	f.method, _ = f.msg["method"].(string)
	switch {
	case f.method != "" && f.id != "":
		w.methods[string(from)+f.id] = f.method
	case f.method == "" && f.id != "":
		f.reply = true
		other := Agent
		if from == Agent {
			other = Client
		}
		f.method = w.methods[string(other)+f.id]
	}
	kind := string(from) + f.method
	if f.reply {
		kind += " reply"
	}
	f.n = w.count[kind]
	w.count[kind]++
	return f
}

// carry takes lines from r to the defect until its end, and then ends to.
func (w *between) carry(from Side, r io.Reader, to *bufferedPipe) {
	reads := &countedReader{r: r}
	b := bufio.NewReaderSize(reads, 1<<16)
	for {
		reads.n = 0
		line, err := b.ReadString('\n')
		if line != "" {
			whole := strings.HasSuffix(line, "\n")
			w.mu.Lock()
			f := w.fly(from, strings.TrimSuffix(line, "\n"))
			f.reads, f.cut = reads.n, !whole
			switch {
			case w.defect == nil && !whole:
				to.write(line)
			case w.defect == nil:
				w.pass(f)
			default:
				w.defect(w, f)
			}
			w.mu.Unlock()
		}
		if err != nil {
			w.mu.Lock()
			stay := w.stay && from != w.side || w.held && from == w.side
			if from != w.side && w.last != nil {
				w.last()
			}
			w.mu.Unlock()
			if stay {
				<-w.gone
			}
			to.close()
			return
		}
	}
}

// countedReader counts reads.
type countedReader struct {
	r io.Reader
	n int
}

func (c *countedReader) Read(b []byte) (int, error) {
	c.n++
	return c.r.Read(b)
}

// leavingStream tells when it is closed.
type leavingStream struct {
	jsonrpc.Stream
	once sync.Once
	gone chan struct{}
}

func (s *leavingStream) Close() error {
	s.once.Do(func() { close(s.gone) })
	return s.Stream.Close()
}

// fixture starts a good peer, with what may be wrong between it and the checker.
// serve runs the peer on its stream until it ends; usage is what it takes, but for what
// the defect leaks.
func fixture(side Side, d defect, usage func() Usage, serve func(jsonrpc.Stream) error) *Peer {
	toPeerR, toPeerW := io.Pipe()     // checker to between
	peerIn, peerInW := io.Pipe()      // between to peer
	peerOutR, peerOut := io.Pipe()    // peer to between
	fromPeerR, fromPeerW := io.Pipe() // between to checker
	w := &between{side: side, defect: d, state: map[string]any{}, methods: map[string]string{}, count: map[string]int{}, gone: make(chan struct{}),
		peer: newBufferedPipe(peerInW), checker: newBufferedPipe(fromPeerW)}
	us := Client
	if side == Client {
		us = Agent
	}
	go w.carry(us, toPeerR, w.peer)
	go w.carry(side, peerOutR, w.checker)
	ended := make(chan error, 1)
	go func() {
		err := serve(jsonrpc.NewLineStream(peerIn, peerOut))
		_ = peerIn.Close()
		_ = peerOut.Close()
		ended <- err
		close(ended)
	}()
	return &Peer{
		Stream:     &leavingStream{Stream: jsonrpc.NewLineStream(fromPeerR, toPeerW), gone: w.gone},
		Raw:        toPeerW,
		CloseWrite: toPeerW.Close,
		Stderr:     &unread{w},
		Usage: func() (Usage, error) {
			u := usage()
			w.mu.Lock()
			defer w.mu.Unlock()
			u.Memory += w.leak
			return u, nil
		},
		Wait: func(ctx context.Context) (int, error) {
			w.mu.Lock()
			undead := w.undead
			w.mu.Unlock()
			if undead {
				<-ctx.Done()
				return 0, ctx.Err()
			}
			select {
			case err := <-ended:
				w.mu.Lock()
				defer w.mu.Unlock()
				if err != nil {
					return 1, nil
				}
				return w.status, nil
			case <-ctx.Done():
				return 0, ctx.Err()
			}
		},
	}
}

// unread is the standard error of an agent, which waits if the client does not read it.
type unread struct{ w *between }

func (u *unread) Write(b []byte) (int, error) {
	u.w.mu.Lock()
	deaf := u.w.deaf
	u.w.mu.Unlock()
	if deaf {
		<-u.w.gone
		return 0, io.ErrClosedPipe
	}
	return len(b), nil
}

// What defects are made of.

// onRequest changes what becomes of requests of a method, "" for all of them.
func onRequest(method string, do defect) defect {
	return func(w *between, f *flying) {
		if f.request() && (method == "" || f.method == method) {
			do(w, f)
			return
		}
		w.pass(f)
	}
}

// onNotification is onRequest for notifications.
func onNotification(method string, do defect) defect {
	return func(w *between, f *flying) {
		if f.notification() && (method == "" || f.method == method) {
			do(w, f)
			return
		}
		w.pass(f)
	}
}

// onReply changes what becomes of the answers to requests of a method.
func onReply(method string, do defect) defect {
	return func(w *between, f *flying) {
		if f.reply && (method == "" || f.method == method) {
			do(w, f)
			return
		}
		w.pass(f)
	}
}

// of limits a defect to what a side sends.
func of(side Side, d defect) defect {
	return func(w *between, f *flying) {
		if f.from == side {
			d(w, f)
			return
		}
		w.pass(f)
	}
}

// when limits a defect to what a test holds for.
func when(test func(f *flying) bool, d defect) defect {
	return func(w *between, f *flying) {
		if test(f) {
			d(w, f)
			return
		}
		w.pass(f)
	}
}

// drop loses what passes.
func drop(*between, *flying) {}

// hangUp ends the connection in the place of what passes.
func hangUp(w *between, _ *flying) { w.cut() }

// result answers a request in the place of the peer.
func result(json string) defect {
	return func(w *between, f *flying) { w.back(f, `{"jsonrpc":"2.0","id":`+f.id+`,"result":`+json+`}`) }
}

// refuse answers a request with an error in the place of the peer.
func refuse(code string) defect {
	return func(w *between, f *flying) {
		w.back(f, `{"jsonrpc":"2.0","id":`+f.id+`,"error":{"code":`+code+`,"message":"defect"}}`)
	}
}

// instead sends a line in the place of what passes; $id stands for its id.
func instead(line string) defect {
	return func(w *between, f *flying) { w.on(f, strings.ReplaceAll(line, "$id", f.id)) }
}

// behind sends a line after what passes; $session stands for the id of the session it is about.
func behind(line string) defect {
	return func(w *between, f *flying) { w.pass(f); w.on(f, f.expand(line)) }
}

func (f *flying) expand(line string) string {
	session := f.str("params.sessionId")
	if session == "" {
		session = f.str("result.sessionId")
	}
	return strings.NewReplacer("$session", session, "$id", f.id).Replace(line)
}

// set gives what passes a member at a path, as JSON.
func set(path, json string) defect {
	return func(w *between, f *flying) {
		f.msg = put(f.msg, strings.Split(path, "."), decode(json)).(map[string]any)
		w.passMsg(f)
	}
}

// unset takes a member away.
func unset(path string) defect {
	return func(w *between, f *flying) {
		f.msg = put(f.msg, strings.Split(path, "."), errAbsent).(map[string]any)
		w.passMsg(f)
	}
}

var errAbsent = errors.New("absent")

func put(v any, path []string, to any) any {
	m, ok := v.(map[string]any)
	if !ok {
		m = map[string]any{}
	}
	switch {
	case len(path) > 1:
		m[path[0]] = put(m[path[0]], path[1:], to)
	case to == errAbsent:
		delete(m, path[0])
	default:
		m[path[0]] = to
	}
	return m
}

// update limits a defect to session/update notifications of a kind, "" for all.
func update(kind string, d defect) defect {
	return onNotification("session/update", when(func(f *flying) bool {
		return kind == "" || f.str("params.update.sessionUpdate") == kind
	}, d))
}

// in limits a defect to a version of the protocol, once that is known.
func in(version string, d defect) defect {
	return func(w *between, f *flying) {
		if f.reply && f.method == "initialize" && f.msg["result"] != nil {
			w.state["version"] = encode(f.get("result.protocolVersion"))
		}
		if v, _ := w.state["version"].(string); v == version {
			d(w, f)
			return
		}
		w.pass(f)
	}
}
