package program

import (
	"fmt"
	"testing"
)

// TestLinesOfASlowReader: if the user's output is slow, lines are dropped, and traffic is still read. The output then
// has the number of dropped lines.
func TestLinesOfASlowReader(t *testing.T) {
	var told []string
	s := New(Spec{TapOnly: true, Tell: func(line string, violation bool) {
		told = append(told, fmt.Sprint(line, violation))
	}})
	for i := range mostLines + 5 {
		s.lines.add(fmt.Sprint(i, " "), i == 0)
	}
	s.tell()
	if n := len(told); n != mostLines+1 || told[0] != "0 true" ||
		told[n-1] != "5 lines more came too fast to be toldfalse" {
		t.Errorf("%d lines, the first %q, the last %q", n, told[0], told[n-1])
	}
	s.lines.add("next ", false)
	if s.tell(); told[len(told)-1] != "next false" {
		t.Errorf("the last line is %q", told[len(told)-1])
	}
}
