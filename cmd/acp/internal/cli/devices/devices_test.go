package devices

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"rsc.io/qr"

	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/identity"
	"github.com/goacp/acp/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// TestQR: what is drawn is the code, with its margin, and every line resets the colours.
func TestQR(t *testing.T) {
	link := "https://gateway.example:7842/pair#f=" + strings.Repeat("0123456789abcdef", 4) + "&t=acpt_" + strings.Repeat("a", 16) + "_" + strings.Repeat("b", 52)
	got, err := drawQR(link)
	if err != nil {
		t.Fatal(err)
	}
	code, err := qr.Encode(link, qr.L)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(got, "\n"), "\n")
	if want := (code.Size + 2*quiet + 1) / 2; len(lines) != want {
		t.Fatalf("%d lines, want %d", len(lines), want)
	}
	for i, line := range lines {
		line, ok1 := strings.CutPrefix(line, "\x1b[30;107m")
		line, ok2 := strings.CutSuffix(line, "\x1b[0m")
		cells := []rune(line)
		if !ok1 || !ok2 || len(cells) != code.Size+2*quiet {
			t.Fatalf("line %d: %q", i, line)
		}
		for x, c := range cells {
			for half, dark := range []bool{c == '▀' || c == '█', c == '▄' || c == '█'} {
				x, y := x-quiet, 2*i+half-quiet
				if want := x >= 0 && y >= 0 && x < code.Size && y < code.Size && code.Black(x, y); dark != want {
					t.Fatalf("module %d, %d is %v", x, y, dark)
				}
			}
		}
	}
	if len([]rune(lines[0])) > 80+len("\x1b[30;107m\x1b[0m") {
		t.Errorf("the longest usual link needs a terminal of %d columns", code.Size+2*quiet)
	}
	if _, err := drawQR(strings.Repeat("x", 10000)); err == nil {
		t.Error("everything fits")
	}
}

// TestApprove: a device that has the ticket alone is let in, or not, by the person at the gateway.
func TestApprove(t *testing.T) {
	for answer, want := range map[string]exitcode.Code{"y\n": exitcode.Done, "YES\n": exitcode.Done, "n\n": exitcode.Denied, "\n": exitcode.Denied, "": exitcode.Denied} {
		state := t.TempDir()
		in, type_, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		out, write := io.Pipe()
		var errs bytes.Buffer
		a := &app.App{In: in, InTerminal: true, Out: write, Err: &errs, Cwd: state, Environ: []string{"HOME=" + state, "XDG_STATE_HOME=" + state}}
		o := &Options{App: a, Verb: verbPair, Role: "approver", User: "jo", URL: "http://127.0.0.1:1", JSON: true}
		done := make(chan error, 1)
		go func() {
			done <- o.run(t.Context())
			_ = write.Close()
		}()
		lines := bufio.NewScanner(out)
		var shown offer
		if !lines.Scan() || json.Unmarshal(lines.Bytes(), &shown) != nil {
			t.Fatal(lines.Text())
		}
		s, err := identity.Open(t.Context(), identity.Dir(state+"/acp"), nil)
		if err != nil {
			t.Fatal(err)
		}
		_, ticket, err := identity.ParseLink(shown.Link)
		if err != nil {
			t.Fatal(err)
		}
		c := identity.Claim{Ticket: ticket, Secret: "chosen by the device", Name: "Phone", Address: "192.0.2.1"}
		if _, _, err := s.Redeem(t.Context(), c); !errors.Is(err, identity.ErrWaiting) {
			t.Error(err)
		}
		if _, err := type_.WriteString(answer); err != nil {
			t.Error(err)
		}
		_ = type_.Close()
		var got error
		for got = identity.ErrWaiting; errors.Is(got, identity.ErrWaiting) && t.Context().Err() == nil; {
			// A device asks once a second. A loop without a pause can keep the other one from writing for ever.
			time.Sleep(5 * time.Millisecond)
			_, _, got = s.Redeem(t.Context(), c)
		}
		if (got == nil) != (want == exitcode.Done) {
			t.Errorf("%q: %v", answer, got)
		}
		_ = lines.Scan() // the device
		if err := <-done; exitcode.Of(err) != want {
			t.Errorf("%q: %v", answer, err)
		}
		if text := errs.String(); !strings.Contains(text, "Phone at 192.0.2.1 wants to join (user jo, approver)") || !strings.Contains(text, "Let it in? [y/N]") {
			t.Errorf("%q", text)
		}
		_ = in.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestShown: what a terminal shows has the code, the command and the picture.
func TestShown(t *testing.T) {
	var out bytes.Buffer
	o := &Options{App: &app.App{Out: &out, OutTerminal: true}}
	tk := identity.Ticket{Ticket: "acpt_x", Code: "012345"}
	if err := o.show(identity.Endpoint{URL: "https://g.example/acp", Fingerprint: "ff"}, tk); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"▀", "acp devices join https://g.example/acp#f=ff 012345\n", "Code: 012 345\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing: %s", want, &out)
		}
	}
	if strings.Contains(out.String(), "acpt_x") {
		t.Error("the ticket is shown in clear")
	}
}
