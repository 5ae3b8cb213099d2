package story

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// mostMessages limits a guess: if it is not recorded which message of a call was late, the first, the second and so on
// are tried, up to this number.
const mostMessages = 4

const testTime = 2 * time.Minute

var runners = map[string][]string{
	"go": {"go", "test", "-count", "1"},
	"js": {"node", "--test"},
	"py": {"python3"},
}

// violations are parts of the messages of a red test, one that fails because of the lock. Any other failure is a
// mistake in the test or its environment.
var violations = []string{" must be refused", " must be granted"}

// Export writes the story to a file as a red test, one that fails because of the lock. It runs the test for each
// message that the faults may have hit. If no test is red, or the test cannot be run, Export restores the file.
func (s *Story) Export(ctx context.Context, file, calls string) error {
	language, err := Language(file)
	if err != nil {
		return err
	}
	before, missing := os.ReadFile(file)
	tries := 1
	if s.Guessed {
		tries = mostMessages
	}
	for message := 1; message <= tries; message++ {
		text, err := s.hitting(message).Write(language, calls)
		if err == nil {
			err = os.WriteFile(file, text, 0o644)
		}
		red := false
		if err == nil {
			red, err = isRed(ctx, language, file)
		}
		if red {
			return nil
		}
		if missing != nil {
			err = errors.Join(err, remove(file))
		} else {
			err = errors.Join(err, os.WriteFile(file, before, 0o644))
		}
		if err != nil {
			return err
		}
	}
	return fmt.Errorf("the test is green with these calls: tried %d messages of each call that was late or lost; "+
		"a counterexample of verify explore says which one it is; nothing was written", tries)
}

func remove(file string) error {
	if err := os.Remove(file); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// isRed runs a test and reports whether it shows a violation. An error says why the test could not run.
func isRed(ctx context.Context, language, file string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, testTime)
	defer cancel()
	command := runners[language]
	cmd := exec.CommandContext(ctx, command[0], append(command[1:len(command):len(command)], filepath.Base(file))...)
	cmd.Dir, cmd.WaitDelay = filepath.Dir(file), time.Second
	out, err := cmd.CombinedOutput()
	if err == nil {
		return false, nil
	}
	for _, violation := range violations {
		if strings.Contains(string(out), violation) {
			return true, nil
		}
	}
	said := string(out[max(0, len(out)-2000):])
	return false, fmt.Errorf("the test cannot be run, and nothing was written: %s: %w\n%s",
		strings.Join(cmd.Args, " "), err, strings.TrimSpace(said))
}
