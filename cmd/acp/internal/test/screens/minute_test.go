//go:build !windows

package screens

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// TestFirstMinute: on a machine with agents, one key leads from the first screen to a conversation with
// one of them.
func TestFirstMinute(t *testing.T) {
	d := newDesk(t)
	d.noAgents()
	bin := filepath.Join(d.home, "bin")
	if err := os.MkdirAll(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"gemini", "opencode"} {
		script := fmt.Sprintf("#!/bin/sh\n%s=agent exec '%s'\n", runAs, os.Args[0])
		if err := os.WriteFile(filepath.Join(bin, name), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	d.env = []string{"PATH=" + bin + string(filepath.ListSeparator) + withoutAgents()}
	s := d.start(80, 24)
	s.Wait("1  Gemini CLI", "2  OpenCode", "installed", "3  Claude", "npm install -g @agentclientprotocol/claude-agent-acp")
	looks(t, s, "agents")
	s.Type("2")
	s.Wait("Scripted 0.1", "type a prompt")
	send(s, "flood")
	s.Wait("word49999")
}

// TestFirstMinuteAlone: on a machine without agents, the next step is on the screen: what to install,
// which one key offers and asks about, and what can be tried without.
func TestFirstMinuteAlone(t *testing.T) {
	d := newDesk(t)
	d.noAgents()
	s := d.start(80, 24)
	s.Wait("1  Claude", "npm install -g @agentclientprotocol/claude-agent-acp", "/demo", "type a prompt")
	s.Type("1")
	s.Wait("Install Claude?", "Yes, run: npm install -g @agentclientprotocol/claude-agent-acp")
	s.Press("esc")
	s.Wait("type a prompt")
	send(s, "hello, what can you do?")
	s.Wait("/agent", "type a prompt")
}

// noAgents removes the agents that the desk has of its own.
func (d *desk) noAgents() {
	d.t.Helper()
	if err := os.Remove(filepath.Join(d.home, ".config/acp/config.toml")); err != nil {
		d.t.Fatal(err)
	}
}
