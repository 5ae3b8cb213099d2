package locks

type shared struct {
	value interface{ Close() error }
	users int
}

// Share returns the value stored under the key. If the key has no value yet, Share opens one. A caller that no
// longer needs the value must call Drop.
func Share[T interface{ Close() error }](p *Process, key any, open func() (T, error)) (T, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s, ok := p.shared[key]; ok {
		s.users++
		return s.value.(T), nil
	}
	value, err := open()
	if err != nil {
		return value, err
	}
	if p.shared == nil {
		p.shared = map[any]*shared{}
	}
	p.shared[key] = &shared{value: value, users: 1}
	return value, nil
}

// Drop ends the caller's use of the value under the key. The last Drop closes the value.
func (p *Process) Drop(key any) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.shared[key]
	if s.users--; s.users > 0 {
		return nil
	}
	delete(p.shared, key)
	return s.value.Close()
}
