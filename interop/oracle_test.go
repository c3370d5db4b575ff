package interop

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/goacp/acp/internal/sample"
)

// profile is one of the four schema documents and its validators.
type profile struct {
	name    string // as zod_oracle.mjs calls it
	version string // of the Go types that read it
	file    string
}

var profiles = []profile{
	{"v1", "v1", "v1.json"},
	{"v1u", "v1", "v1.unstable.json"},
	{"v2", "v2", "v2.json"},
	{"v2u", "v2", "v2.unstable.json"},
}

// question is one value put to the validators, and their answer.
type question struct {
	typ    string
	value  []byte
	valid  bool // generated as valid, not mutated
	accept bool
	kept   []byte // when accepted
	reason string // when refused
}

// sweep is all questions of one profile with their answers.
type sweep struct {
	schema    *sample.Schema
	types     []string
	questions []question
	err       error
}

var sweeps struct {
	sync.Once
	done map[string]func() *sweep
}

// ask returns the answered questions of a profile. The validators run once per test binary,
// all profiles from the first call on, two at a time.
func ask(t *testing.T, p profile) *sweep {
	t.Helper()
	need(t)
	count := setting(t, "ACP_ORACLE_VALUES", 210)
	seed := setting(t, "ACP_ORACLE_SEED", 1)
	sweeps.Do(func() {
		sweeps.done = map[string]func() *sweep{}
		two := make(chan struct{}, 2)
		for _, p := range profiles {
			got := make(chan *sweep, 1)
			go func() {
				two <- struct{}{}
				defer func() { <-two }()
				s := &sweep{}
				s.err = s.run(p, count, uint64(seed))
				got <- s
			}()
			sweeps.done[p.name] = sync.OnceValue(func() *sweep { return <-got })
		}
	})
	s := sweeps.done[p.name]()
	if s.err != nil {
		t.Fatalf("oracle %s: %v", p.name, s.err)
	}
	return s
}

// need skips the test where the official SDK cannot run. With ACP_ORACLE=require,
// and where CI is set, that fails instead.
func need(t *testing.T) {
	t.Helper()
	stop := t.Skip
	if os.Getenv("ACP_ORACLE") == "require" || os.Getenv("CI") != "" {
		stop = t.Fatal
	}
	if _, err := exec.LookPath("node"); err != nil {
		stop("SKIPPED: nothing was tested against the official SDK, because node is not installed")
	}
	if _, err := os.Stat("node_modules/@agentclientprotocol/sdk"); err != nil {
		stop("SKIPPED: nothing was tested against the official SDK; run `npm ci` in interop first")
	}
}

func setting(t *testing.T, name string, otherwise int) int {
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

func loadSchema(p profile) (*sample.Schema, error) {
	f, err := os.Open("../schema/" + p.file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return sample.Load(f)
}

func (s *sweep) run(p profile, count int, seed uint64) (err error) {
	if s.schema, err = loadSchema(p); err != nil {
		return err
	}
	list, err := exec.Command("node", "zod_oracle.mjs", p.name, "--list").Output()
	if err != nil {
		return fmt.Errorf("list types: %w", err)
	}
	s.types = strings.Fields(string(list))
	known := map[string]bool{}
	for _, name := range s.schema.Names() {
		known[name] = true
	}
	for i, typ := range s.types {
		if !known[typ] {
			return fmt.Errorf("the schema has no type %s", typ)
		}
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		for j := range count {
			value := s.schema.Valid(rng, typ)
			if j%3 != 0 {
				value = s.schema.Mutate(rng, typ, value)
			}
			s.questions = append(s.questions, question{typ: typ, value: value, valid: j%3 == 0})
		}
	}
	return s.answer(p)
}

// answer runs one validator process, writing questions while reading answers.
func (s *sweep) answer(p profile) error {
	cmd := exec.Command("node", "zod_oracle.mjs", p.name)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	wrote := make(chan error, 1)
	go func() { wrote <- s.write(in) }()
	readErr := s.read(out)
	if readErr != nil {
		_ = cmd.Process.Kill()
	}
	writeErr := <-wrote
	if err := cmd.Wait(); err != nil && readErr == nil {
		readErr = err
	}
	if readErr != nil {
		return readErr
	}
	return writeErr
}

func (s *sweep) write(in io.WriteCloser) error {
	defer in.Close()
	w := bufio.NewWriterSize(in, 1<<18)
	var line bytes.Buffer
	for _, q := range s.questions {
		line.Reset()
		line.WriteString(q.typ)
		line.WriteByte(' ')
		if err := json.Compact(&line, q.value); err != nil {
			return fmt.Errorf("%s: generated text is not JSON: %w", q.typ, err)
		}
		line.WriteByte('\n')
		if _, err := w.Write(line.Bytes()); err != nil {
			return err
		}
	}
	return w.Flush()
}

func (s *sweep) read(out io.Reader) error {
	r := bufio.NewReaderSize(out, 1<<18)
	for i := range s.questions {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return fmt.Errorf("answer %d of %d: %w", i, len(s.questions), err)
		}
		line = bytes.TrimSuffix(line, []byte("\n"))
		q := &s.questions[i]
		switch {
		case len(line) > 0 && line[0] == '+':
			q.accept, q.kept = true, line[1:]
		case len(line) > 0 && line[0] == '-':
			q.reason = string(line[1:])
			if strings.HasPrefix(q.reason, "threw ") || strings.HasPrefix(q.reason, "no type ") {
				return fmt.Errorf("%s: %s", q.typ, q.reason)
			}
		default:
			return fmt.Errorf("answer %d is not one: %.40q", i, line)
		}
	}
	return nil
}
