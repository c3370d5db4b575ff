package ids

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
)

// TestCalls: a call that ended in an earlier turn and begins again is another one, also for those who continue from what
// was kept.
func TestCalls(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{ // turn, id, how
		{"once", "1 c title, 1 c completed, 2 d pending", "1.c 1.c 1.d"},
		{"anew", "1 c title, 1 c completed, 2 c title, 2 c completed, 3 c pending", "1.c 1.c 1.c~2 1.c~2 1.c~3"},
		{"in its turn", "1 c title, 1 c completed, 1 c title", "1.c 1.c 1.c"},
		{"open", "1 c title, 2 c title, 2 c failed, 3 c title", "1.c 1.c 1.c 1.c~3"},
		{"said late", "1 c title, 1 c completed, 2 c completed, 2 c in_progress", "1.c 1.c 1.c 1.c"},
		{"said late, and anew", "1 c title, 1 c cancelled, 2 c completed, 2 c title", "1.c 1.c 1.c 1.c~2"},
		{"ids like names", "1 c~2 title, 1 c~2 completed, 2 c title, 3 c~2 title", "1.c~2 1.c~2 1.c 1.c~2~3"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			whole := NewCalls("1.")
			var got []string
			for said := range strings.SplitSeq(tt.in, ", ") {
				var turn uint64
				var id, how string
				if _, err := fmt.Sscan(said, &turn, &id, &how); err != nil {
					t.Fatal(err)
				}
				u := &acp.ToolCallUpdate{ToolCallID: acp.ToolCallID(id)}
				if how == "title" {
					u.Title = acp.Set("something")
				} else {
					u.Status = acp.Set(acp.ToolCallStatus(how))
				}
				name := whole.Take(u, turn)
				got = append(got, name)
				if now := whole.Name(id); now != name {
					t.Errorf("%s is called %s and %s", id, name, now)
				}
			}
			if diff := cmp.Diff(tt.want, strings.Join(got, " ")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestCallsKept: names that are made of what was kept are those that would have been made otherwise, wherever the one
// ends and the other begins.
func TestCallsKept(t *testing.T) {
	type said struct {
		u    acp.ToolCallUpdate
		turn uint64
	}
	var all []said
	for turn := range uint64(4) {
		for _, status := range []acp.ToolCallStatus{acp.ToolCallStatusPending, acp.ToolCallStatusCompleted} {
			all = append(all, said{acp.ToolCallUpdate{ToolCallID: "c", Title: acp.Set("t"), Status: acp.Set(status)}, 10 * turn})
		}
	}
	whole := NewCalls("2.")
	var names []string
	for _, s := range all {
		names = append(names, whole.Take(&s.u, s.turn))
	}
	for cut := range all {
		c := NewCalls("2.")
		for i, s := range all {
			if i < cut {
				s.u.ToolCallID = acp.ToolCallID(names[i])
				c.Kept(&s.u, s.turn)
			} else if name := c.Take(&s.u, s.turn); name != names[i] {
				t.Errorf("cut at %d, %d is %s, not %s", cut, i, name, names[i])
			}
		}
	}
}

// TestCallsBounded: no more than MaxCalls are remembered, and none with a longer id than MaxID.
func TestCallsBounded(t *testing.T) {
	c := NewCalls("")
	for i := range 2 * MaxCalls {
		c.Take(&acp.ToolCallUpdate{ToolCallID: acp.ToolCallID(fmt.Sprint(i)), Title: acp.Set("t")}, 1)
	}
	long := strings.Repeat("x", MaxID+1)
	for turn := range uint64(2) {
		if name := c.Take(&acp.ToolCallUpdate{ToolCallID: acp.ToolCallID(long), Status: acp.Set(acp.ToolCallStatusCompleted), Title: acp.Set("t")}, turn); name != long {
			t.Errorf("%.20q", name)
		}
	}
	if len(c.calls) != MaxCalls || len(c.order) != MaxCalls {
		t.Errorf("%d and %d are remembered", len(c.calls), len(c.order))
	}
}
