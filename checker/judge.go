package checker

import (
	"hammerlock/history"
	"hammerlock/model"
)

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

// PageStory is the cheapest story of a page, or of a part of it.
type PageStory struct {
	Key int32
	model.Story
}

// Stories returns the stories of all pages of a history, by the model of its lock. If holds share the lock, each shared
// hold has a story of its own, and the exclusive holds have one together.
func Stories(h *history.History) ([]PageStory, error) {
	c, err := Prepare(h)
	if err != nil {
		return nil, err
	}
	defer c.Free()
	var list []PageStory
	for _, holds := range c.byKey {
		alone, shared := c.split(holds)
		parts := [][]int32{alone}
		for _, n := range shared {
			parts = append(parts, c.excluders(n, alone, shared))
		}
		for _, part := range parts {
			if len(part) > 0 {
				_, s := c.story(part)
				list = append(list, PageStory{c.holds[part[0]].Key, s})
			}
		}
	}
	return list, nil
}
