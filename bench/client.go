package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"runtime/pprof"
	"time"
)

// runAgent is the agent process.
func runAgent(name string) error {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // coder logs every ending
	s, err := subjectByName(name)
	if err != nil {
		return err
	}
	defer profile("agent")()
	return s.serve(link{r: os.Stdin, w: os.Stdout, stdio: true})
}

// runClient is the client process: it starts its agent, or with mode one is
// both, and makes the measurements that are asked for on its standard input,
// one JSON value a line, until that ends.
func runClient(name, mode string) error {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	s, err := subjectByName(name)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	defer profile("client")()
	var m *meter
	var stop func() error
	dec := json.NewDecoder(bufio.NewReader(os.Stdin))
	for {
		var o op
		if err := dec.Decode(&o); err == io.EOF {
			break
		} else if err != nil {
			return err
		}
		var res result
		if o.Kind == "idle" {
			if overNet(mode) {
				res.Metrics, err = idleNet(ctx, s, mode, o.Count)
			} else {
				res.Metrics, err = idle(ctx, s, o.Count)
			}
		} else {
			if m == nil {
				if m, stop, err = connect(ctx, s, mode); err != nil {
					return err
				}
			}
			res.Metrics, err = m.run(ctx, o)
		}
		if err != nil {
			res = result{Error: err.Error()}
		}
		fmt.Println(res)
	}
	if stop != nil {
		return stop()
	}
	return nil
}

// connect makes the connection under test and returns how to end it.
func connect(ctx context.Context, s *subject, mode string) (*meter, func() error, error) {
	rec := newRecorder()
	if overNet(mode) {
		return connectNet(ctx, s, mode, rec)
	}
	if mode == "one" {
		c, wait, err := pair(s, rec)
		if err != nil {
			return nil, nil, err
		}
		return &meter{c, rec, true}, func() error { c.close(); return wait() }, nil
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	cmd := exec.CommandContext(ctx, exe, "agent", s.name)
	cmd.Stderr = os.Stderr
	// The parent's ends are made here so that they are plain files: what
	// os/exec hands out is a wrapper.
	inR, inW, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	cmd.Stdin, cmd.Stdout = inR, outW
	err = cmd.Start()
	_ = inR.Close()
	_ = outW.Close()
	if err != nil {
		return nil, nil, err
	}
	c := s.dial(link{r: outR, w: inW}, rec)
	return &meter{c, rec, false}, func() error {
		c.close()
		kill := time.AfterFunc(5*time.Second, func() { _ = cmd.Process.Kill() })
		defer kill.Stop()
		return cmd.Wait()
	}, nil
}

// pair connects both sides within this process.
func pair(s *subject, rec *recorder) (client, func() error, error) {
	inR, inW, err1 := os.Pipe()
	outR, outW, err2 := os.Pipe()
	if err := errors.Join(err1, err2); err != nil {
		return nil, nil, err
	}
	done := make(chan error, 1)
	go func() { done <- s.serve(link{r: inR, w: outW}) }()
	return s.dial(link{r: outR, w: inW}, rec), func() error { return <-done }, nil
}

// idle measures what connections hold that have been used once, per side.
func idle(ctx context.Context, s *subject, count int) (map[string]float64, error) {
	before := restStats()
	clients := make([]client, count)
	waits := make([]func() error, count)
	var err error
	for i := range clients {
		if clients[i], waits[i], err = pair(s, newRecorder()); err != nil {
			return nil, err
		}
		if err := clients[i].prompt(ctx, 0, promptText); err != nil {
			return nil, err
		}
	}
	time.Sleep(100 * time.Millisecond) // let what was started for the prompt end
	after := restStats()
	for i, c := range clients {
		c.close()
		if err := waits[i](); err != nil {
			return nil, err
		}
	}
	sides := float64(2 * count)
	return map[string]float64{
		"heap":       float64(int64(after.Heap)-int64(before.Heap)) / sides / 1000,
		"stack":      float64(int64(after.Stack)-int64(before.Stack)) / sides / 1000,
		"rss":        float64(after.RSS-before.RSS) / sides / 1000,
		"goroutines": float64(after.Goroutines-before.Goroutines) / sides,
		"files":      float64(after.Files-before.Files) / sides,
	}, nil
}

// profile writes profiles of this process when ACPBENCH_PROFILE names a
// directory.
func profile(role string) func() {
	dir := os.Getenv("ACPBENCH_PROFILE")
	if dir == "" {
		return func() {}
	}
	f, err := os.Create(fmt.Sprintf("%s/%s.cpu.prof", dir, role))
	if err != nil {
		return func() {}
	}
	_ = pprof.StartCPUProfile(f)
	return func() {
		pprof.StopCPUProfile()
		_ = f.Close()
		if f, err := os.Create(fmt.Sprintf("%s/%s.mem.prof", dir, role)); err == nil {
			_ = pprof.Lookup("allocs").WriteTo(f, 0)
			_ = f.Close()
		}
	}
}
