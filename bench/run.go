package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

// An outcome is what a workload gave: numbers by subject and metric, one per
// round, NaN where a round failed.
type outcome struct {
	*workload
	samples  map[string]map[string][]float64
	failures map[string]string // by subject: the first one, or why it did not run
}

type runner struct {
	rounds int
	quick  bool
	skip   map[string]string // subjects that do not run, and why
	node   string
	tty    bool // whether to show progress
}

func (r *runner) progress(format string, args ...any) {
	if r.tty {
		fmt.Fprintf(os.Stderr, "\r\033[K"+format, args...)
	}
}

// findNode looks for Node and the installed SDK.
func (r *runner) findNode() error {
	node, err := exec.LookPath("node")
	if err != nil {
		return err
	}
	r.node = node
	if _, err := os.Stat(filepath.Join("node_modules", "@agentclientprotocol", "sdk")); err != nil {
		return errors.New("node_modules is missing: run npm ci in this directory")
	}
	return nil
}

// perOp bounds one measurement, however long it was meant to take.
const perOp = 60 * time.Second

// run measures a workload: every subject once to warm up, then in rounds, each
// of which begins with another subject.
func (r *runner) run(ctx context.Context, w *workload) (*outcome, error) {
	o := &outcome{workload: w, samples: map[string]map[string][]float64{}, failures: map[string]string{}}
	procs := map[string]*process{}
	defer func() {
		for _, p := range procs {
			p.stop()
		}
	}()
	rounds := r.rounds
	limit := w.rounds
	if r.quick && w.quickRounds > 0 {
		limit = w.quickRounds
	}
	if limit > 0 {
		rounds = min(rounds, limit)
	}
	var names []string
	for _, name := range w.subjects {
		if why := r.skip[name]; why != "" {
			o.failures[name] = why
			continue
		}
		names = append(names, name)
		o.samples[name] = map[string][]float64{}
	}
	for round := -1; round < rounds; round++ {
		for i := range names {
			name := names[(i+max(round, 0))%len(names)]
			if o.failures[name] != "" {
				o.add(name, nil)
				continue
			}
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			r.progress("%s: %s, round %d of %d", w.name, name, round+1, rounds)
			if w.op.Kind == "idle" {
				if round < 0 {
					continue
				}
				// What a former measurement left behind would count.
				if p := procs[name]; p != nil {
					p.stop()
					delete(procs, name)
				}
			}
			m, err := r.measure(ctx, procs, name, w, round < 0)
			if err != nil {
				o.failures[name] = err.Error()
			}
			if round >= 0 {
				o.add(name, m)
			}
		}
	}
	r.progress("")
	for _, name := range names {
		if p := procs[name]; p != nil {
			if err := p.stop(); err != nil && o.failures[name] == "" {
				o.failures[name] = "ending: " + err.Error()
			}
		}
	}
	return o, nil
}

func (r *runner) measure(ctx context.Context, procs map[string]*process, name string, w *workload, warm bool) (map[string]float64, error) {
	p := procs[name]
	if p == nil {
		var err error
		if p, err = r.start(ctx, name, w); err != nil {
			return nil, err
		}
		procs[name] = p
	}
	q := w.op
	if r.quick {
		q.Millis = w.quick
	}
	if n := w.windows[name]; n > 0 {
		q.Window = n
	}
	if warm && name == tsName {
		q.Millis *= 4 // compiles what is hot; -quick cuts that short
		if !r.quick && q.Kind == "updates" {
			q.Millis = 2000
		}
	}
	return p.measure(q)
}

// add records one round.
func (o *outcome) add(name string, m map[string]float64) {
	for _, k := range o.metrics {
		v, ok := m[k.key]
		if !ok {
			v = math.NaN()
		}
		o.samples[name][k.key] = append(o.samples[name][k.key], v)
	}
}

// A process is a client process, which has started its agent.
type process struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	stderr *tail
	ended  bool
}

func (r *runner) start(ctx context.Context, name string, w *workload) (*process, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	args := []string{exe, "client", name, w.mode}
	if name == tsName {
		args = []string{r.node, "--expose-gc", filepath.Join("ts", "client.mjs"), w.mode}
	}
	p := &process{stderr: &tail{}}
	p.cmd = exec.CommandContext(ctx, args[0], args[1:]...)
	p.cmd.Stderr = p.stderr
	p.cmd.Env = append(os.Environ(), w.env...)
	p.cmd.WaitDelay = time.Second
	ownGroup(p.cmd)
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(out)
	return p, p.cmd.Start()
}

// measure asks for one measurement and waits for its result.
func (p *process) measure(o op) (map[string]float64, error) {
	b, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	if _, err := p.in.Write(append(b, '\n')); err != nil {
		return nil, p.died(err)
	}
	late := make(chan struct{})
	t := time.AfterFunc(perOp, func() {
		close(late)
		killGroup(p.cmd)
	})
	line, err := p.out.ReadBytes('\n')
	if !t.Stop() {
		<-late
		return nil, fmt.Errorf("no result within %v", perOp)
	}
	if err != nil {
		return nil, p.died(err)
	}
	var res result
	if err := json.Unmarshal(line, &res); err != nil {
		return nil, err
	}
	if res.Error != "" {
		return nil, errors.New(res.Error)
	}
	return res.Metrics, nil
}

func (p *process) died(err error) error {
	killGroup(p.cmd)
	_ = p.stop()
	return fmt.Errorf("the process ended (%w): %s", err, p.stderr)
}

// stop ends the process and its agent.
func (p *process) stop() error {
	if p.ended {
		return nil
	}
	p.ended = true
	_ = p.in.Close()
	t := time.AfterFunc(10*time.Second, func() { killGroup(p.cmd) })
	defer t.Stop()
	return p.cmd.Wait() // an agent ends with its input, and its client waits for it
}

// tail keeps the end of what is written to it.
type tail struct {
	mu sync.Mutex
	b  []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	t.b = t.b[max(0, len(t.b)-2000):]
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.b))
}
