package agent

import "os"

// syncDir does nothing: directories cannot be synchronized here.
func syncDir(string) error { return nil }

// removeOpen closes a journal and removes it, since what is open cannot be removed
// here.
func removeOpen(j *journal) error {
	if j.file == nil {
		return nil
	}
	name := j.file.Name()
	if err := j.close(); err != nil {
		return err
	}
	return os.Remove(name)
}
