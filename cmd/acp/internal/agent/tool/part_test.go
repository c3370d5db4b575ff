package tool

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/goacp/acp"
)

var reSays = regexp.MustCompile(`\[lines (\d+)-(\d+) of (\d+)`)

// TestReadSays: whatever the lengths of the lines, the lines that a result says it has are
// those that it has, and reading on as it says shows each line once.
func TestReadSays(t *testing.T) {
	for name, text := range map[string]string{
		"3,000 of 100 bytes": numbered(3000, 100), "many short ones": numbered(9000, 8), "a few": numbered(3, 50),
		"unfinished": strings.TrimSuffix(numbered(700, 100), "\n"), "near the bound": numbered(25, 2047), "é": strings.Repeat("é\n", 30_000),
		"long ones": numbered(60, 3000), "empty lines": strings.Repeat("\n", 5000), "invalid": strings.Repeat("some text \xff and more of it\n", 100),
	} {
		lines := strings.SplitAfter(text, "\n")
		if lines[len(lines)-1] == "" {
			lines = lines[:len(lines)-1]
		}
		b := &bench{cwd: t.TempDir()}
		b.write(t, "a.txt", text)
		use := b.sessionOf(t, &acp.Client{MaxVersion: 2})
		for from, calls := 1, 0; from <= len(lines); calls++ {
			res := use(Read, fmt.Sprintf(`{"path":"a.txt","from":%d}`, from))
			if len(res.Text) > MaxText+300 || calls > 100 {
				t.Fatalf("%s: %d bytes in call %d", name, len(res.Text), calls)
			}
			i := strings.LastIndex(res.Text, "\n[lines ")
			if i < 0 {
				t.Fatalf("%s: nothing says which lines: %.300q", name, res.Text)
			}
			var said [3]int
			for j, s := range reSays.FindStringSubmatch(res.Text[i:])[1:] {
				said[j], _ = strconv.Atoi(s)
			}
			shown := strings.SplitAfter(res.Text[:i+1], "\n")
			shown = shown[:len(shown)-1]
			if said[0] != from || said[1] != from+len(shown)-1 || said[2] != len(lines) {
				t.Fatalf("%s: %s, but there are %d lines from %d on", name, res.Text[i:], len(shown), from)
			}
			for j, got := range shown {
				want := strings.ToValidUTF8(strings.TrimSuffix(lines[from-1+j], "\n"), "\uFFFD")
				if got = strings.TrimSuffix(got, "\n"); got != want && !strings.Contains(got, "more characters of line "+strconv.Itoa(from+j)+"]") {
					t.Fatalf("%s: line %d is %.60q, want %.60q", name, from+j, got, want)
				}
			}
			if want := fmt.Sprintf("read on with from: %d", said[1]+1); strings.Contains(res.Text[i:], want) != (said[1] < len(lines)) {
				t.Fatalf("%s: %s", name, res.Text[i:])
			}
			from = said[1] + 1
		}
	}
}

// numbered returns lines of some length that differ.
func numbered(lines, length int) string {
	var b strings.Builder
	for i := range lines {
		fmt.Fprintf(&b, "%-*d\n", length-1, i+1)
	}
	return b.String()
}

// TestReadLongLine: a long line is cut, which is said, and all of it can be read.
func TestReadLongLine(t *testing.T) {
	long := strings.Repeat("0123456789é", 30_000)
	b := &bench{cwd: t.TempDir()}
	b.write(t, "a.txt", "one\n"+long+"\nthree\n")
	use := b.sessionOf(t, &acp.Client{MaxVersion: 2})
	res := use(Read, `{"path":"a.txt"}`)
	has(t, res.Text, "one\n0123456789é", "[… 328000 more characters of line 2]\nthree\n", "[lines 1-3 of 3; line 2 is cut: from: 2, column: 2001 shows more]")
	if len(res.Text) > 8<<10 {
		t.Errorf("%d bytes", len(res.Text))
	}
	re := regexp.MustCompile(`(?s)^(.*?)(?:\[… \d+ more characters of line 2\])?\n\[lines 2-2 of 3; read on with from: 3(?:; line 2 is cut: from: 2, column: (\d+) shows more)?\]$`)
	var got strings.Builder
	for column := "1"; column != ""; {
		res := use(Read, `{"path":"a.txt","from":2,"column":`+column+`}`)
		m := re.FindStringSubmatch(res.Text)
		if m == nil || len(res.Text) > maxRest+200 {
			t.Fatalf("%d bytes: %.100q", len(res.Text), res.Text)
		}
		got.WriteString(m[1])
		column = m[2]
	}
	if got.String() != long {
		t.Errorf("%d bytes of the line were read, want %d", got.Len(), len(long))
	}
	has(t, use(Read, `{"path":"a.txt","from":2,"column":999999}`).Text, "[lines 2-2 of 3")
	has(t, use(Read, `{"path":"a.txt","from":9,"column":9}`).Said, "has no line 9: it has 3 lines")
}

// TestReadDirectory: the names come in order, and it is said how many there are.
func TestReadDirectory(t *testing.T) {
	b := &bench{cwd: t.TempDir()}
	for i := range maxEntries + 20 {
		b.write(t, fmt.Sprintf("f%04d", i), "")
	}
	res, err := b.use(t, Read, `{"path":"."}`)
	if err != nil {
		t.Fatal(err)
	}
	has(t, res.Text, "f0000\nf0001\n", "f0499\n[500 of 520 entries; find names others]")
	has(t, res.Said, "is a directory with 520 entries; these are 500 of them")
}

func FuzzPart(f *testing.F) {
	f.Add("a\nb", uint32(1), uint32(0), uint32(0))
	f.Add(strings.Repeat("é", 3000), uint32(1), uint32(1), uint32(2001))
	f.Add("\xff\n\n", uint32(2), uint32(9), uint32(7))
	f.Fuzz(func(t *testing.T, text string, from, count, column uint32) {
		p := partOf(text, from, count, column, MaxReadBytes)
		n := strings.Count(p.text, "\n")
		if p.text != "" && !strings.HasSuffix(p.text, "\n") {
			n++
		}
		if n != p.last-p.first+1 || p.last > max(p.total, p.first-1) || len(p.text) > MaxReadBytes {
			t.Errorf("%d lines are shown, in %d bytes, said are %d-%d of %d", n, len(p.text), p.first, p.last, p.total)
		}
		p.says((&bench{}).Hints())
	})
}
