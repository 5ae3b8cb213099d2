package dashboard

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/gdamore/tcell/v2"
	"golang.org/x/term"
)

// ErrSmall means that the terminal is too small for panels.
var ErrSmall = fmt.Errorf("the terminal is smaller than %d x %d", minWidth, minHeight)

// Fits returns nil if both files are terminals that can show the dashboard. Otherwise the error is the reason.
func Fits(out, err *os.File, getenv func(string) string) error {
	switch {
	case out == nil || err == nil || !term.IsTerminal(int(out.Fd())) || !term.IsTerminal(int(err.Fd())):
		return errors.New("stdout and stderr are not both terminals")
	case getenv("TERM") == "" || getenv("TERM") == "dumb":
		return errors.New("TERM names no terminal that can be drawn on")
	case getenv("CI") != "" && getenv("CI") != "false":
		return errors.New("CI is set")
	}
	w, h, e := term.GetSize(int(out.Fd()))
	if e == nil && (w < minWidth || h < minHeight) {
		return ErrSmall
	}
	return nil
}

// Start takes over the terminal and begins to draw. If this process dies, a guard restores the terminal.
func Start(o Options, getenv func(string) string) (*Dashboard, error) {
	guard, err := newGuard()
	if err != nil {
		return nil, err
	}
	screen, err := tcell.NewScreen()
	if err == nil {
		err = screen.Init()
	}
	if err != nil {
		return nil, errors.Join(err, guard.dismiss())
	}
	o.ASCII, o.Color = shows(getenv)
	d := Open(screen, o)
	d.guard = guard
	return d, nil
}

// shows returns whether the terminal can show only ASCII, which depends on the locale. It also returns whether
// colours are wanted: they are not if NO_COLOR is set (https://no-color.org).
func shows(getenv func(string) string) (ascii, color bool) {
	locale := strings.ToLower(strings.ReplaceAll(cmp.Or(getenv("LC_ALL"), getenv("LC_CTYPE"), getenv("LANG")), "-", ""))
	return !strings.Contains(locale, "utf8"), getenv("NO_COLOR") == ""
}
