//go:build unix

package seek

import (
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// benchPatterns are of the kinds that models write.
var benchPatterns = []struct{ name, expr string }{
	{"literal", `Zzqneedle`}, {"literal that is common", `return nil`}, {"escaped", `Zzq\(`}, {"class", `Zzq[(]`},
	{"anchors", `^func Zzq.*\{$`}, {"word", `\bZzqx`}, {"word, common", `\berr\b`}, {"literal inside", `func [a-z]+Zzq\(`},
	{"alternatives", `Zzqa|Qqzb|Xxkc`}, {"classes alone", `[A-Z]{9,}[0-9]`}, {"no case", `(?i)zzqneedle`},
}

// BenchmarkRipgrep searches a directory by turns with this package and with rg, if it is
// there, and reports medians of the times of wall and processor, and how many times those of
// rg they are. ACP_SEEK_TREE is a directory to search, and ACP_SEEK_FILES how many files to
// make where it is not set: 2,000 by default. Use -benchtime 5x for medians of five.
func BenchmarkRipgrep(b *testing.B) {
	rg, err := exec.LookPath("rg")
	if err != nil {
		b.Skip("there is no rg")
	}
	dir := os.Getenv("ACP_SEEK_TREE")
	made := dir == ""
	if made {
		dir = b.TempDir()
		n, err := strconv.Atoi(cmp.Or(os.Getenv("ACP_SEEK_FILES"), "2000"))
		if err != nil {
			b.Fatal(err)
		}
		grow(b, dir, n)
	}
	for _, p := range benchPatterns {
		b.Run(p.name, func(b *testing.B) {
			var ours, theirs [2][]time.Duration
			for range b.N {
				var own, other int
				wall, cpu := spent(syscall.RUSAGE_SELF, func() { own = lines(b, dir, p.expr) })
				ours[0], ours[1] = append(ours[0], wall), append(ours[1], cpu)
				wall, cpu = spent(syscall.RUSAGE_CHILDREN, func() {
					out, err := exec.Command(rg, "--hidden", "--no-require-git", "--no-ignore-dot", "--max-filesize=4M", "--no-heading", "-n", "-e", p.expr, dir).Output()
					if e, ok := err.(*exec.ExitError); err != nil && (!ok || e.ExitCode() != 1) {
						b.Fatal(err)
					}
					other = bytes.Count(out, []byte{'\n'})
				})
				theirs[0], theirs[1] = append(theirs[0], wall), append(theirs[1], cpu)
				if own != other && made {
					b.Errorf("%d lines are found, by rg %d", own, other)
				} else if own != other { // it takes other files for text
					b.Logf("%d lines are found, by rg %d", own, other)
				}
			}
			for i, what := range []string{"wall", "cpu"} {
				o, t := median(ours[i]), median(theirs[i])
				b.ReportMetric(o.Seconds()*1000, "ms-"+what)
				b.ReportMetric(t.Seconds()*1000, "ms-"+what+"-rg")
				b.ReportMetric(o.Seconds()/t.Seconds(), what+"/rg")
			}
		})
	}
}

// lines returns how many lines of a directory match.
func lines(b *testing.B, dir, expr string) int {
	p, err := Compile(expr)
	if err != nil {
		b.Fatal(err)
	}
	var n atomic.Int64
	readers, matchers := make([]Reader, Workers()), make([]*Matcher, Workers())
	for i := range matchers {
		matchers[i] = p.Matcher()
	}
	w := Walk{Dir: dir, Base: dir, Visit: func(worker int, path string) {
		data, _ := readers[worker].Read(path)
		if data == nil || !matchers[worker].May(data) {
			return
		}
		data = Lines(data)
		_, end, ok := matchers[worker].Next(data, 0)
		for ; ok; _, end, ok = matchers[worker].Next(data, end+1) {
			n.Add(1)
		}
	}}
	w.Run(b.Context())
	return int(n.Load())
}

// spent returns what f takes, of wall and processor.
func spent(who int, f func()) (wall, cpu time.Duration) {
	used := func() time.Duration {
		var u syscall.Rusage
		if syscall.Getrusage(who, &u) != nil {
			return 0
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	from, before := time.Now(), used()
	f()
	return time.Since(from), used() - before
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}

// grow makes files like those of a program, of 10 kB on average.
func grow(b *testing.B, dir string, files int) {
	b.Helper()
	words := strings.Fields("func return nil err if for range string int byte package import type struct interface map make append len error context client server request response handle config option value name path file line read write open close start stop Test Get Set New Is Has And Or test data index count total size limit offset buffer http json node tree root leaf left right")
	r := rand.New(rand.NewPCG(1, 2))
	for i := range files {
		sub := filepath.Join(dir, fmt.Sprintf("part%d", i%20), fmt.Sprintf("package%d", i/20%100))
		if i < 2000 {
			if err := os.MkdirAll(sub, 0o700); err != nil {
				b.Fatal(err)
			}
		}
		var t bytes.Buffer
		size := 1000 + r.IntN(18_000)
		for t.Len() < size {
			t.WriteString(strings.Repeat("\t", r.IntN(4)))
			for range 2 + r.IntN(8) {
				t.WriteString(words[r.IntN(len(words))])
				t.WriteString([]string{" ", "(", ")", ".", ", ", " := ", "_", " = "}[r.IntN(8)])
			}
			t.WriteByte('\n')
		}
		if i%1000 == 7 {
			t.WriteString("func aZzq() {\nfunc Zzq(x) {\n// Zzqx Zzqneedle Zzqa\n")
		}
		if err := os.WriteFile(filepath.Join(sub, fmt.Sprintf("file%d.go", i)), t.Bytes(), 0o600); err != nil {
			b.Fatal(err)
		}
	}
}
