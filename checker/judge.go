package checker

import "hammerlock/history"

// JudgeFile judges the history in a file of either format, such as the history.bin of a saved run.
func JudgeFile(path string) ([]Verdict, error) {
	h, err := history.Open(path)
	if err != nil {
		return nil, err
	}
	defer h.Space.Free()
	return judge(h)
}

// JudgeHistory judges operations that were recorded by another program. The error describes the first operation that
// is impossible.
func JudgeHistory(h *history.History) ([]Verdict, error) {
	if err := h.Validate(); err != nil {
		return nil, err
	}
	return judge(h)
}

func judge(h *history.History) ([]Verdict, error) {
	c, err := Prepare(h)
	if err != nil {
		return nil, err
	}
	defer c.Free()
	return Judge(c)
}
