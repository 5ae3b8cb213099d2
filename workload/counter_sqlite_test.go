package workload

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	_ "modernc.org/sqlite" // driver of the counters in a file

	"hammerlock/history"
	"hammerlock/locks"
)

// TestADatabaseThatStaysBusyWroteNothing holds the file's write lock for longer than a writer waits.
func TestADatabaseThatStaysBusyWroteNothing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "counter")
	c, err := openSQLite(file, false)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	db := c.(*sqlCounter).db
	held, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxIdleConns(0)
	impatient, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := impatient.ExecContext(t.Context(), "PRAGMA busy_timeout = 1"); err != nil {
		t.Fatal(err)
	}
	_, err = impatient.ExecContext(t.Context(), sqliteWrite, Count{Views: 1}.row("page")...)
	if outcome, reason := locks.Classify(busy(err)); outcome != history.Failed || reason != history.Refused {
		t.Errorf("got %s %s, %v", outcome, reason, err)
	}
	if err := errors.Join(impatient.Close(), held.Rollback()); err != nil {
		t.Error(err)
	}
	if got := load(t, c, "page"); got != (Count{}) {
		t.Errorf("the page has %+v", got)
	}
}

// TestADatabaseMayLieAnywhere uses a directory whose name has characters with a meaning in URLs.
func TestADatabaseMayLieAnywhere(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a \"b' c\\d\n#e:%41?$HOME")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "counter")
	c, err := openSQLite(file, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.Store(t.Context(), "page", Count{Views: 1}), c.Close()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
}
