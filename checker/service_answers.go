package checker

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"hammerlock/history"
	"hammerlock/internal/human"
)

// busyStatuses are statuses by which services often refuse a visit.
var busyStatuses = []int{409, 423, 429, 503, 504}

// inDoubt describes the unknown visits by their answers. If the service may have refused some of them, it suggests the
// flag --refusal, with these statuses and those that the user has given already.
func inDoubt(pages []served) string {
	var unknown, refused []*history.Op
	for i := range pages {
		unknown, refused = append(unknown, pages[i].unknown...), append(refused, pages[i].refused...)
	}
	perhaps := byStatus(unknown)
	maps.DeleteFunc(perhaps, func(status int, _ int64) bool { return !slices.Contains(busyStatuses, status) })
	if len(perhaps) == 0 {
		return answersOf(unknown)
	}
	maps.Copy(perhaps, byStatus(refused))
	return fmt.Sprintf("%s (if such visits did not count: --refusal %s)", answersOf(unknown),
		strings.Join(human.Names(slices.Sorted(maps.Keys(perhaps)), strconv.Itoa), ","))
}

// answersOf counts visits by their status: "2 visits had no answer, 3 visits had status 500".
func answersOf(visits []*history.Op) string {
	var parts []string
	counts := byStatus(visits)
	for _, status := range slices.Sorted(maps.Keys(counts)) {
		what := fmt.Sprintf("status %d", status)
		if status == 0 {
			what = "no answer"
		}
		parts = append(parts, human.Quantity(counts[status], "visit")+" had "+what)
	}
	return strings.Join(parts, ", ")
}

// byStatus counts visits by their status; 0 = no answer.
func byStatus(visits []*history.Op) map[int]int64 {
	counts := map[int]int64{}
	for _, op := range visits {
		counts[op.Status()]++
	}
	return counts
}
