package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/acpws"
)

func overNet(mode string) bool { return mode == "http" || mode == "ws" }

// runNetAgent is the agent process of a measurement over the network: it prints its
// URL and serves until its standard input ends.
func runNetAgent(name, mode string) error {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	defer profile("agent")()
	s, err := subjectByName(name)
	if err != nil {
		return err
	}
	url, _, err := serveNet(s, mode)
	if err != nil {
		return err
	}
	fmt.Println(url)
	_, _ = io.Copy(io.Discard, os.Stdin)
	return nil
}

// serveNet serves the agent of a subject on the loopback interface.
func serveNet(s *subject, mode string) (url string, stop func() error, err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	agents := &acphttp.Server{Serve: appAgent().Serve, Upgrade: acpws.Upgrader{}}
	server := &http.Server{Handler: agents}
	if s.bare() {
		server.Handler = bareHandler(mode, s == each)
	}
	go func() { _ = server.Serve(listener) }()
	return fmt.Sprintf("%s://%s/acp", mode, listener.Addr()), func() error {
		return errors.Join(server.Close(), agents.Close(context.Background()))
	}, nil
}

// netAgent starts the agent process.
func netAgent(ctx context.Context, s *subject, mode string) (url string, stop func() error, err error) {
	exe, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	cmd := exec.CommandContext(ctx, exe, "agent", s.name, mode)
	cmd.Stderr = os.Stderr
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		return "", nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return "", nil, err
	}
	return strings.TrimSpace(line), func() error {
		_ = in.Close()
		kill := time.AfterFunc(5*time.Second, func() { _ = cmd.Process.Kill() })
		defer kill.Stop()
		return cmd.Wait()
	}, nil
}

// dialNet connects to an agent at a URL.
func dialNet(ctx context.Context, s *subject, url string, rec *recorder) (client, error) {
	switch {
	case s.bare() && strings.HasPrefix(url, "ws"):
		conn, _, err := websocket.Dial(ctx, url, nil)
		if err != nil {
			return nil, err
		}
		conn.SetReadLimit(1 << 20)
		p := &wsPipe{conn: conn}
		return dialBare(link{r: p, w: p}, rec), nil
	case s.bare():
		resp, err := http.Get(url)
		if err != nil {
			return nil, err
		}
		return dialBare(link{r: &eventReader{body: resp.Body, in: bufio.NewReaderSize(resp.Body, bareBuffer)}, w: poster(url)}, rec), nil
	case strings.HasPrefix(url, "ws"):
		return dialAppOver(acpws.NewTransport(url), rec)
	}
	return dialAppOver(acphttp.NewTransport(url), rec)
}

func connectNet(ctx context.Context, s *subject, mode string, rec *recorder) (*meter, func() error, error) {
	url, stop, err := netAgent(ctx, s, mode)
	if err != nil {
		return nil, nil, err
	}
	c, err := dialNet(ctx, s, url, rec)
	if err != nil {
		return nil, nil, errors.Join(err, stop())
	}
	return &meter{c, rec, false}, func() error { c.close(); return stop() }, nil
}

// idleNet measures what a server holds for connections that have a session and do
// nothing.
func idleNet(ctx context.Context, s *subject, mode string, count int) (map[string]float64, error) {
	url, stop, err := netAgent(ctx, s, mode)
	if err != nil {
		return nil, err
	}
	rec := newRecorder()
	var clients []client
	defer func() {
		var all sync.WaitGroup
		for _, c := range clients {
			all.Go(c.close)
		}
		all.Wait()
		_ = stop()
	}()
	open := func() error {
		c, err := dialNet(ctx, s, url, rec)
		if err != nil {
			return err
		}
		clients = append(clients, c)
		return c.prompt(ctx, 0, promptText)
	}
	if err := open(); err != nil {
		return nil, err
	}
	before, err := askStats(ctx, clients[0], rec, "rest")
	if err != nil {
		return nil, err
	}
	for range count {
		if err := open(); err != nil {
			return nil, err
		}
	}
	after, err := askStats(ctx, clients[0], rec, "rest")
	if err != nil {
		return nil, err
	}
	n := float64(count)
	return map[string]float64{
		"heap":       float64(int64(after.Heap)-int64(before.Heap)) / n / 1000,
		"stack":      float64(int64(after.Stack)-int64(before.Stack)) / n / 1000,
		"rss":        float64(after.RSS-before.RSS) / n / 1000,
		"goroutines": float64(after.Goroutines-before.Goroutines) / n,
		"files":      float64(after.Files-before.Files) / n,
	}, nil
}

// bareHandler serves the bare agent. each says whether every event is sent on its own.
func bareHandler(mode string, each bool) http.Handler {
	if mode == "ws" {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			conn, err := websocket.Accept(w, r, nil)
			if err != nil {
				return
			}
			conn.SetReadLimit(1 << 20)
			p := &wsPipe{conn: conn}
			_ = serveBare(link{r: p, w: p})
		})
	}
	in, feed := io.Pipe()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			body, _ := io.ReadAll(r.Body)
			w.WriteHeader(http.StatusAccepted)
			_, _ = feed.Write(append(body, '\n'))
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusOK)
		e := &eventWriter{w: w, control: http.NewResponseController(w), each: each}
		_ = e.control.Flush()
		_ = serveBare(link{r: in, w: e})
	})
}

// wsPipe makes lines of messages and messages of lines.
type wsPipe struct {
	conn *websocket.Conn
	rest []byte
}

func (p *wsPipe) Read(b []byte) (int, error) {
	if len(p.rest) == 0 {
		_, text, err := p.conn.Read(context.Background())
		if err != nil {
			return 0, io.EOF
		}
		p.rest = append(text, '\n')
	}
	n := copy(b, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

func (p *wsPipe) Write(b []byte) (int, error) {
	for line := range bytes.Lines(b) {
		if err := p.conn.Write(context.Background(), websocket.MessageText, bytes.TrimSuffix(line, []byte("\n"))); err != nil {
			return 0, err
		}
	}
	return len(b), nil
}

func (p *wsPipe) Close() error { return p.conn.CloseNow() }

// eventWriter makes events of lines, and sends what was written at once or, with each,
// every event on its own.
type eventWriter struct {
	w       io.Writer
	control *http.ResponseController
	each    bool
	buf     []byte
}

func (e *eventWriter) Write(b []byte) (int, error) {
	e.buf = e.buf[:0]
	for line := range bytes.Lines(b) {
		e.buf = append(append(append(e.buf, "data: "...), line...), '\n')
		if e.each {
			if _, err := e.w.Write(e.buf); err != nil {
				return 0, err
			}
			if err := e.control.Flush(); err != nil {
				return 0, err
			}
			e.buf = e.buf[:0]
		}
	}
	if _, err := e.w.Write(e.buf); err != nil {
		return 0, err
	}
	return len(b), e.control.Flush()
}

func (e *eventWriter) Close() error { return nil }

// eventReader makes lines of events.
type eventReader struct {
	body io.Closer
	in   *bufio.Reader
	rest []byte
}

func (e *eventReader) Read(b []byte) (int, error) {
	for len(e.rest) == 0 {
		line, err := e.in.ReadSlice('\n')
		if err != nil {
			return 0, io.EOF
		}
		e.rest, _ = bytes.CutPrefix(line, []byte("data: "))
		if len(line) == 1 {
			e.rest = nil
		}
	}
	n := copy(b, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

func (e *eventReader) Close() error { return e.body.Close() }

// poster posts lines.
type poster string

func (p poster) Write(b []byte) (int, error) {
	resp, err := http.Post(string(p), "application/json", bytes.NewReader(bytes.TrimSuffix(b, []byte("\n"))))
	if err != nil {
		return 0, err
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	return len(b), resp.Body.Close()
}

func (p poster) Close() error { return nil }
