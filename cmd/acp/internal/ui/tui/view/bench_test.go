package view

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/goacp/acp/transcript"
)

// frame is what a screen does for each picture. It returns how long that took.
func frame(tr *Transcript, c *transcript.Conversation, changes []transcript.Change) time.Duration {
	start := time.Now()
	tr.Set(c.Snapshot(), changes)
	tr.Layout(8 * time.Millisecond)
	tr.Lines(tr.Height()-50, 50)
	return time.Since(start)
}

// answer is a text like those that models write.
func answer(n int) string {
	const part = "Some **words** about `code` and what it does, long enough to be wrapped on most screens there are.\n\n- one\n- two with [a link](https://example.com)\n\n```go\nfunc main() {\n\tfmt.Println(\"hello\") // says it\n}\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n"
	return strings.Repeat(part, n/len(part)+1)[:n]
}

func report(b *testing.B, worst, sum time.Duration, frames int) {
	b.ReportMetric(float64(worst.Microseconds())/1e3, "worst-ms")
	b.ReportMetric(float64(sum.Microseconds())/1e3/float64(max(frames, 1)), "frame-ms")
}

// BenchmarkStream streams a message of 10 MB, with a frame for every 64 kB.
func BenchmarkStream(b *testing.B) {
	text := answer(10 << 20)
	for b.Loop() {
		c := transcript.New(transcript.Config{EntryBytes: 12 << 20, TotalBytes: 128 << 20})
		tr := New(fullTheme())
		tr.SetWidth(120)
		var worst, sum time.Duration
		frames := 0
		for pos := 0; pos < len(text); {
			var changes []transcript.Change
			for range 64 {
				n := min(1024, len(text)-pos)
				changes = append(changes, c.Apply(chunk("m", text[pos:pos+n])))
				pos += n
			}
			d := frame(tr, c, changes)
			worst, sum, frames = max(worst, d), sum+d, frames+1
		}
		report(b, worst, sum, frames)
		b.ReportMetric(float64(tr.cached)/1e6, "cached-MB")
	}
}

// BenchmarkBurst applies 50,000 small updates to many entries, with a frame for every 500.
func BenchmarkBurst(b *testing.B) {
	for b.Loop() {
		c := transcript.New(transcript.Config{})
		tr := New(fullTheme())
		tr.SetWidth(120)
		var worst, sum time.Duration
		for i := range 100 {
			var changes []transcript.Change
			for j := range 500 {
				changes = append(changes, c.Apply(chunk(fmt.Sprint("m", i*20+j/25), "a few words of text ")))
			}
			d := frame(tr, c, changes)
			worst, sum = max(worst, d), sum+d
		}
		report(b, worst, sum, 100)
	}
}

// BenchmarkEntries draws a conversation of 60,000 entries from nothing, and then resizes it.
func BenchmarkEntries(b *testing.B) {
	c := transcript.New(transcript.Config{})
	for i := range 60000 {
		c.Apply(chunk(fmt.Sprint("m", i), "a few words of text"))
	}
	for b.Loop() {
		tr := New(fullTheme())
		tr.SetWidth(120)
		worst := frame(tr, c, nil)
		tr.SetWidth(80)
		worst = max(worst, frame(tr, c, []transcript.Change{{}}))
		report(b, worst, worst, 1)
	}
}
