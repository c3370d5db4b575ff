//go:build !windows

package tui

import (
	"os"
	"syscall"
	"testing"
)

func init() { ownTerminal = func() bool { return syscall.Getpgrp() == os.Getpid() } }

// TestTerminalLogin: a program that logs in gets the terminal, after which the agent is started anew
// and the prompt sent again.
func TestTerminalLogin(t *testing.T) {
	s := chat(t, 80, 24, asChat+"=login")
	s.Type("hello")
	s.Press("enter")
	s.Wait("Set up")
	s.Press("enter")
	s.Wait("Say the word:")
	if s.Alternate() {
		t.Error("the program has to share the screen")
	}
	s.Type("please")
	s.Press("enter")
	s.Wait("You said: hello", "type a prompt")
	s.Press("ctrl+d")
	if code := s.Exit(); code != 0 {
		t.Errorf("exit status %d", code)
	}
	s.Restored()
}

// TestTerminalLoginEnded: the program ends with the conversation, and the terminal is put back.
func TestTerminalLoginEnded(t *testing.T) {
	s := chat(t, 80, 24, asChat+"=login")
	s.Type("hello")
	s.Press("enter")
	s.Wait("Set up")
	s.Press("enter")
	s.Wait("Say the word:")
	s.Signal(syscall.SIGTERM)
	if code := s.Exit(); code == 0 {
		t.Error("exit status 0")
	}
	s.Restored()
}
