package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/agent/tool"
)

// A viewer notes how often a change is shown, and how it grows.
type viewer struct {
	mu     sync.Mutex
	calls  map[acp.ToolCallID]bool
	status []string
	shown  int // times that a diff was shown of a call that is pending
	first  string
}

func (v *viewer) see(_ context.Context, _ *acp.ClientSession, u *acp.Update) {
	v.mu.Lock()
	defer v.mu.Unlock()
	c, ok := u.Update.(*acp.ToolCallUpdate)
	if !ok {
		return
	}
	if v.calls == nil {
		v.calls = map[acp.ToolCallID]bool{}
	}
	v.calls[c.ToolCallID] = true
	if s, ok := c.Status.Get(); ok {
		v.status = append(v.status, string(s))
	}
	data, _ := json.Marshal(u.Update)
	if strings.Contains(string(data), `"type":"diff"`) {
		if v.shown++; v.first == "" {
			v.first = string(data)
		}
	}
}

// TestDrafts: a change of a file is seen while the model writes it, as the call that the
// tool then makes.
func TestDrafts(t *testing.T) {
	var text strings.Builder
	for i := range 200 {
		fmt.Fprintf(&text, "line %d_of_what_is_new_in_this_file\n", i)
	}
	long := text.String()
	for _, version := range []int{1, 2} {
		for name, tc := range map[string]struct {
			tool  string
			input any
			shows bool
			fails bool
		}{
			"new file":       {"write", tool.WriteInput{Path: "new.txt", Text: long}, true, false},
			"file there":     {"write", tool.WriteInput{Path: "main.go", Text: long}, false, true},
			"edit":           {"edit", tool.EditInput{Path: "doc/notes.txt", Edits: []tool.Replacement{{Old: "second\n", New: long}}}, true, false},
			"not there":      {"edit", tool.EditInput{Path: "doc/notes.txt", Edits: []tool.Replacement{{Old: "third\n", New: long}}}, false, true},
			"no such schema": {"write", map[string]string{"path": "new.txt", "texts": long}, false, true},
		} {
			t.Run(fmt.Sprintf("v%d %s", version, name), func(t *testing.T) {
				input, err := json.Marshal(tc.input)
				if err != nil {
					t.Fatal(err)
				}
				_, with := scripted(t, "pace 1us\nuse "+tc.tool+" "+string(input)+"\n---\nsay Done.")
				v := new(viewer)
				k := start(t, version, with, func(k *talk) {
					old := k.client.Update
					k.client.Update = func(ctx context.Context, s *acp.ClientSession, u *acp.Update) {
						v.see(ctx, s, u)
						old(ctx, s, u)
					}
				})
				k.tell("/mode full")
				contains(t, k.tell("Go."), "Done.")
				v.mu.Lock()
				defer v.mu.Unlock()
				if len(v.calls) != 1 {
					t.Errorf("%d calls", len(v.calls))
				}
				want := "completed"
				if tc.fails {
					want = "failed"
				}
				if got := v.status[len(v.status)-1]; got != want || v.status[0] != "pending" {
					t.Error(v.status)
				}
				if most := 12; tc.shows != (v.shown > 3) || v.shown > most {
					t.Errorf("shown %d times", v.shown)
				}
				if tc.shows && strings.Contains(v.first, "line 150_") {
					t.Error("all of it is shown at once")
				}
			})
		}
	}
}

// TestDraftsVoid: a change that is never asked for ends as cancelled, and is not made.
func TestDraftsVoid(t *testing.T) {
	_, with := scripted(t, "pace 1us\nuse write {\"path\":\"new.txt\",\"text\":\""+strings.Repeat("no ", 200)+"\"}\nfail request\n---\nsay Done.")
	v := new(viewer)
	k := start(t, 2, with, func(k *talk) { k.client.Update = v.see })
	k.tell("/mode full")
	_, err := k.session.Prompt(t.Context(), acp.Text("Go.")).Wait()
	v.mu.Lock()
	defer v.mu.Unlock()
	if err == nil || len(v.status) == 0 || v.status[len(v.status)-1] != "cancelled" {
		t.Error(err, v.status)
	}
	if _, err := os.Stat(filepath.Join(k.cwd, "new.txt")); err == nil {
		t.Error("the file was written")
	}
}
