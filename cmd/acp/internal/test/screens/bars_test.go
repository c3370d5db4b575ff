//go:build !windows

package screens

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestBars: the colours of a diff reach the right edge, all of them, also after scrolling, when the
// terminal erases the rest of a row in the colour that is set.
func TestBars(t *testing.T) {
	d := newDesk(t)
	d.env = []string{"COLORTERM=truecolor"}
	var text strings.Builder
	for i := range 40 {
		fmt.Fprintf(&text, "line %d %s\n\n", i, strings.Repeat("word ", i%12))
	}
	if err := os.WriteFile(filepath.Join(d.home, "greet", "long.txt"), []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	s := d.start(80, 30, "--allow", "*")
	s.Wait("type a prompt")
	send(s, "/edit long.txt 'line 0' => 'LINE 0'")
	s.Wait("LINE 0", "Changed long.txt", "type a prompt")
	send(s, "/edit! long.txt word => wort")
	s.Wait("lines more", "Changed long.txt", "type a prompt")
	s.Press("ctrl+t")
	s.Gone("lines more")
	s.Press("home")
	s.Wait("❯ /edit long.txt 'line 0'", "asked: ")
	s.Press("end")
	s.Wait("● Changed", "line 39 wort", "type a prompt")
	s.Press("pgup")
	s.Gone("● Changed")
	s.Wait("line 25 wort")
	s.Press("pgup")
	s.Gone("line 25 wort")
	s.Wait("line 18 wort")
	still(s)
	scrolled, green := s.SVG(), false
	edges, edge := map[float64]float64{}, 0.0 // of rows, and the rightmost of all
	last := 0.0                               // row, at whose end there is how much is below
	for _, m := range regexp.MustCompile(`<rect x="([0-9.]+)" y="([0-9]+)" width="([0-9.]+)"`).FindAllStringSubmatch(scrolled, -1) {
		var x, y, w float64
		if _, err := fmt.Sscan(m[1]+" "+m[2]+" "+m[3], &x, &y, &w); err != nil {
			t.Fatal(err)
		}
		edges[y] = max(edges[y], x+w)
		edge, last = max(edge, x+w), max(last, y)
	}
	delete(edges, last)
	if len(edges) < 10 {
		t.Errorf("%d rows have a colour", len(edges))
	}
	for y, x := range edges {
		if edge-x > 1 {
			t.Errorf("the colour of the row at %v ends at %.1f, not at %.1f", y, x, edge)
		}
	}
	for _, m := range regexp.MustCompile(`\x1b\[[0-9;]*[mX]`).FindAllString(s.Output(), -1) {
		switch {
		case strings.HasSuffix(m, "X") && green:
			t.Fatalf("characters are erased, which not all terminals do in the background that is set: %q", m)
		case strings.HasSuffix(m, "m"):
			green = strings.Contains(m, "48;") || green && m != "\x1b[m" && !strings.Contains(m, "49")
		}
	}
	erased := strings.Count(s.Output(), "\x1b[2J")
	s.Press("ctrl+l")
	if !s.Eventually(10*time.Second, func(string) bool {
		return strings.Count(s.Output(), "\x1b[2J") > erased && s.SVG() == scrolled
	}) {
		t.Error("after scrolling it is not as when it is drawn anew")
	}
}
