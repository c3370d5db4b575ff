package engine

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/journal"
	"github.com/goacp/acp/cmd/acp/internal/journal/file"
)

// rows are the records of a session of an earlier version.
type rows []Record

func (r rows) ListSessions(context.Context, Query, Position, int) ([]Session, error) { return nil, nil }
func (r rows) State(context.Context, string) (State, error)                          { return State{}, nil }
func (r rows) Shares(context.Context, string) ([]Share, error)                       { return nil, nil }

func (r rows) Records(_ context.Context, _ int64, from uint64, n, _ int) ([]Record, error) {
	var some []Record
	for _, v := range r {
		if v.Seq >= from && len(some) < n {
			some = append(some, v)
		}
	}
	return some, nil
}

// FuzzEarlier: whatever an earlier version has kept becomes a journal that can be owned and that has all sound records.
func FuzzEarlier(f *testing.F) {
	gap := append(make([]byte, earlierGapHead), `{"a":1}`...)
	gap[7] = 2
	f.Add("prompt", []byte(`{"a":1}`), uint64(1), "gap:update", gap, uint64(3), true)
	f.Add("fork", []byte(`{"at":1,"hash":"ab"}`), uint64(1), "gap:", gap[:earlierGapHead], uint64(2), false)
	f.Add("gap:", []byte("short"), uint64(7), "what", []byte("{\n}"), uint64(1<<62), true)
	f.Add("turn_end", []byte(nil), uint64(0), "gap:vouch", []byte("no JSON"), uint64(1), true)
	f.Fuzz(func(t *testing.T, kind string, data []byte, seq uint64, kind2 string, data2 []byte, seq2 uint64, sound bool) {
		at := time.Unix(1_700_000_000, 0).UTC()
		all := rows{{Seq: seq, Epoch: 1, At: at, Kind: Kind(kind), Data: data}, {Seq: seq2, Epoch: 2, At: at, Kind: Kind(kind2), Data: data2}}
		before := [32]byte{}
		for i := range all {
			if sound {
				all[i].Hash = earlierSum(&all[i], before, "s")
			}
			before = all[i].Hash
		}
		dir, n := t.TempDir(), 0
		err := file.Put(dir, "s", func(add func(*Record) error) error {
			first := journal.Draft{Kind: journal.KindSession, Data: []byte(`{"format":3}`)}
			return Earlier(t.Context(), all, State{Session: "s", Head: Head{Seq: seq2}}, first, func(r *Record) error {
				n++
				return add(r)
			})
		})
		if err != nil {
			t.Fatal(err)
		}
		c := file.Open(dir, file.Options{})
		defer c.Close()
		read := 0
		w, err := c.Own(t.Context(), "s", func(*Record) error { read++; return nil })
		if err != nil || read != n {
			t.Fatalf("%d records of %d, %v", read, n, err)
		}
		if err := w.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestEarlierAttributes: the numbers of records in attributes are one higher, and everything else is as it was.
func TestEarlierAttributes(t *testing.T) {
	for was, want := range map[string]string{
		"":                                       "",
		"null":                                   "null",
		"[1]":                                    "[1]",
		`{ "starts":2 }`:                         `{ "starts":2 }`,
		`{"since":0,"made":"since"}`:             `{"since":0,"made":"since"}`,
		`{"since":7,"starts":7}`:                 `{"since":8,"starts":7}`,
		`{"compacted":14,"held":{"since":1}}`:    `{"compacted":15,"held":{"since":1}}`,
		`{"fork":{"from":"s","at":3,"since":0}}`: `{"fork":{"at":4,"from":"s","since":0}}`,
		`{"fork":{"at":"x"},"since":-1,"a":null}`: `{"fork":{"at":"x"},"since":-1,"a":null}`,
	} {
		got := EarlierAttributes(json.RawMessage(was))
		if len(got) == 0 && want == "" {
			continue
		}
		var a, b any
		if err := errors.Join(json.Unmarshal(got, &a), json.Unmarshal([]byte(want), &b)); err != nil {
			t.Fatal(err)
		}
		x, _ := json.Marshal(a)
		if y, _ := json.Marshal(b); string(x) != string(y) {
			t.Errorf("%s: %s", was, got)
		}
	}
}
