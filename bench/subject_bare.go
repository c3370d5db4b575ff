package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"syscall"
)

// bare moves the same bytes as the others and understands none of them: a
// goroutine that reads lines and one goroutine per request that answers it.
// Streams are written through a buffer and only counted. What it costs is what
// pipes and scheduler cost.
var bare = &subject{name: "bare", title: "bare pipe", dial: dialBare, serve: serveBare}

// each is bare, and over HTTP it sends every event on its own.
var each = &subject{name: "each", title: "bare, event by event", dial: dialBare, serve: serveBare}

const (
	bareBuffer    = 64 << 10
	bareRequest   = `{"jsonrpc":"2.0","id":`
	bareUpdate    = `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":`
	bareStats     = `{"jsonrpc":"2.0","method":"$stats","params":`
	bareResponse  = `,"result":{"stopReason":"end_turn"}}` + "\n"
	barePromptMid = `,"method":"session/prompt","params":{"sessionId":`
)

func quoted(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// bareConn is what both sides have in common.
type bareConn struct {
	link link
	in   *bufio.Reader
	long []byte // a line beyond the buffer

	mu  sync.Mutex // of the writer
	out []byte
}

func newBareConn(l link) *bareConn {
	if l.stdio {
		// As every fast program does: a blocking descriptor costs a thread
		// switch per message.
		l.r, l.w = nonblocking(os.Stdin), nonblocking(os.Stdout)
	}
	return &bareConn{link: l, in: bufio.NewReaderSize(l.r, bareBuffer)}
}

func nonblocking(f *os.File) *os.File {
	fd := int(f.Fd())
	if syscall.SetNonblock(fd, true) != nil {
		return f
	}
	return os.NewFile(uintptr(fd), f.Name())
}

func (c *bareConn) line() ([]byte, error) {
	line, err := c.in.ReadSlice('\n')
	if err != bufio.ErrBufferFull {
		return line, err
	}
	c.long = append(c.long[:0], line...)
	for err == bufio.ErrBufferFull {
		line, err = c.in.ReadSlice('\n')
		c.long = append(c.long, line...)
	}
	return c.long, err
}

func (c *bareConn) write(p []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := c.link.w.Write(p)
	return err
}

// idAt reads the number behind bareRequest.
func idAt(line []byte) (id, end int) {
	for end = len(bareRequest); end < len(line) && line[end] >= '0' && line[end] <= '9'; end++ {
		id = id*10 + int(line[end]-'0')
	}
	return id, end
}

type bareClient struct {
	*bareConn
	rec     *recorder
	replies []chan error // by session, whose number is the request's id
	replyMu sync.Mutex
	done    chan struct{}
	files   map[string][]byte // answers to fs/read_text_file, but for the id
	bufs    sync.Pool
}

func dialBare(l link, rec *recorder) client {
	c := &bareClient{bareConn: newBareConn(l), rec: rec, done: make(chan struct{}), files: map[string][]byte{}}
	go c.read()
	return c
}

func (c *bareClient) reply(i int) chan error {
	c.replyMu.Lock()
	defer c.replyMu.Unlock()
	for len(c.replies) <= i {
		c.replies = append(c.replies, make(chan error, 1))
	}
	return c.replies[i]
}

func (c *bareClient) prompt(ctx context.Context, i int, text string) error {
	if cmd, ok := parseCommand(text); ok && cmd.verb == "read" && c.files[cmd.path()] == nil {
		c.files[cmd.path()] = []byte(`,"result":{"content":` + quoted(c.rec.files[cmd.path()]) + "}}\n")
	}
	ch := c.reply(i)
	buf, _ := c.bufs.Get().(*[]byte)
	if buf == nil {
		buf = new([]byte)
	}
	b := append((*buf)[:0], bareRequest...)
	b = strconv.AppendInt(b, int64(i), 10)
	b = append(b, barePromptMid...)
	b = strconv.AppendQuote(b, sessionID(i))
	b = append(b, `,"prompt":[{"type":"text","text":`...)
	b = strconv.AppendQuote(b, text)
	b = append(b, "}]}}\n"...)
	err := c.write(b)
	*buf = b
	c.bufs.Put(buf)
	if err != nil {
		return err
	}
	select {
	case err := <-ch:
		return err
	case <-c.done:
		return io.ErrUnexpectedEOF
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *bareClient) read() {
	defer close(c.done)
	for {
		line, err := c.line()
		if err != nil {
			return
		}
		switch {
		case bytes.HasPrefix(line, []byte(bareUpdate)):
			c.rec.updates.Add(1)
		case bytes.HasPrefix(line, []byte(bareRequest)):
			id, end := idAt(line)
			if !bytes.HasPrefix(line[end:], []byte(`,"method"`)) {
				c.reply(id) <- nil
				continue
			}
			go c.serveFile(id, bytes.Clone(line))
		case bytes.HasPrefix(line, []byte(bareStats)):
			c.rec.text(string(bytes.TrimSuffix(line[len(bareStats):], []byte("}\n"))))
		}
	}
}

func (c *bareClient) serveFile(id int, line []byte) {
	_, path, _ := bytes.Cut(line, []byte(`"path":"`))
	path, _, _ = bytes.Cut(path, []byte(`"`))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out = append(strconv.AppendInt(append(c.out[:0], bareRequest...), int64(id), 10), c.files[string(path)]...)
	_, _ = c.link.w.Write(c.out)
}

func (c *bareClient) close() {
	c.link.close()
	<-c.done
}

type bareAgent struct {
	*bareConn
	read chan int // size of the answer to the only read under way
}

func serveBare(l link) error {
	a := &bareAgent{bareConn: newBareConn(l), read: make(chan int, 1)}
	defer a.link.close()
	for {
		line, err := a.line()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		id, end := idAt(line)
		if bytes.HasPrefix(line[end:], []byte(`,"result"`)) {
			a.read <- len(line)
			continue
		}
		go a.serve(id, bytes.Clone(line))
	}
}

func (a *bareAgent) serve(id int, line []byte) {
	if i := bytes.Index(line, []byte(`"text":"!`)); i >= 0 {
		text, _, _ := bytes.Cut(line[i+len(`"text":"`):], []byte(`"`))
		cmd, _ := parseCommand(string(text))
		if err := a.command(cmd); err != nil {
			fmt.Fprintln(os.Stderr, "bare:", err)
			return
		}
	}
	b := make([]byte, 0, 128)
	b = strconv.AppendInt(append(b, bareRequest...), int64(id), 10)
	_ = a.write(append(b, bareResponse...))
}

func (a *bareAgent) command(cmd command) error {
	head := bareUpdate + quoted(sessionID(0)) + `,"update":{"sessionUpdate":`
	var line string
	switch cmd.verb {
	case "updates":
		line = head + `"agent_message_chunk","content":{"type":"text","text":` + quoted(chunkText(atoi(cmd.arg))) + "}}}}\n"
	case "diffs":
		before, after := diffTexts()
		line = head + `"tool_call_update","toolCallId":"call-17","content":[{"type":"diff","path":` + quoted(diffPath) +
			`,"oldText":` + quoted(before) + `,"newText":` + quoted(after) + "}]}}}\n"
	case "stats":
		return a.write([]byte(bareStats + workStats().String() + "}\n"))
	case "read":
		err := a.write([]byte(bareRequest + `0,"method":"fs/read_text_file","params":{"sessionId":` + quoted(sessionID(0)) + `,"path":` + quoted(cmd.path()) + "}}\n"))
		if err != nil {
			return err
		}
		if got := <-a.read; got < cmd.n {
			return checkSize(got, cmd.n)
		}
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	w := bufio.NewWriterSize(a.link.w, bareBuffer)
	for range cmd.n {
		if _, err := w.WriteString(line); err != nil {
			return err
		}
	}
	return w.Flush()
}
