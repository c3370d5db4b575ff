package acp_test

import (
	"context"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acptest"
	"github.com/goacp/acp/acpv1"
)

// generous is a client that tells a line more than it is asked for.
type generous struct{}

func (generous) ReadTextFile(_ context.Context, req *acpv1.ReadTextFileRequest) (*acpv1.ReadTextFileResponse, error) {
	return &acpv1.ReadTextFileResponse{Content: "two\nthree\nfour\nfive\n"}, nil
}

// TestReadLinesCut holds that an agent gets no more lines than it has asked for.
func TestReadLinesCut(t *testing.T) {
	got := make(chan string, 2)
	agent := &acp.Agent{Prompt: func(_ context.Context, turn *acp.Turn) (acp.StopReason, error) {
		for _, limit := range []uint32{3, 0} {
			text, err := turn.ReadLines("/data.txt", 2, limit)
			if err != nil {
				return "", err
			}
			got <- text
		}
		return acp.StopEndTurn, nil
	}}
	conn, _ := acptest.Pair(t, agent, &acp.Client{MaxVersion: 1, Files: acp.ReadOnly(generous{})})
	s, err := conn.NewSession(t.Context(), acp.SessionConfig{Cwd: "/"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Prompt(t.Context(), acp.Text("x")).Wait(); err != nil {
		t.Fatal(err)
	}
	if text := <-got; text != "two\nthree\nfour\n" {
		t.Errorf("of 3 lines: %q", text)
	}
	if text := <-got; text != "two\nthree\nfour\nfive\n" {
		t.Errorf("of all lines: %q", text)
	}
}
