package file

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"
)

// TestPatient: what comes is passed on as it is, errors behind it.
func TestPatient(t *testing.T) {
	want := bytes.Repeat([]byte("0123456789"), 3*patientBuffer/10)
	failed := errors.New("the disk is gone")
	for name, r := range map[string]io.Reader{
		"whole":  bytes.NewReader(want),
		"bytes":  iotest.OneByteReader(bytes.NewReader(want)),
		"at end": iotest.DataErrReader(bytes.NewReader(want)),
		"empty":  io.MultiReader(bytes.NewReader(nil), bytes.NewReader(want)),
	} {
		p := newPatient(t.Context(), r)
		if got, err := io.ReadAll(p); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
		if _, err := p.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("%s: %v behind the end", name, err)
		}
		_ = p.Close()
	}
	p := newPatient(t.Context(), io.MultiReader(bytes.NewReader(want), iotest.ErrReader(failed)))
	if got, err := io.ReadAll(p); err != failed || !bytes.Equal(got, want) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	_ = p.Close()
}

// TestPatientEnds: a read that waits ends with the context.
func TestPatientEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		enough := errors.New("enough")
		in, out := io.Pipe()
		p := newPatient(ctx, in)
		defer p.Close()
		time.AfterFunc(time.Hour, func() { cancel(enough) })
		for range 2 {
			if n, err := p.Read(make([]byte, 1)); n != 0 || err != enough {
				t.Errorf("%d, %v", n, err)
			}
		}
		_ = out.Close() // else its goroutine waits for ever
	})
}
