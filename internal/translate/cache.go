package translate

import "container/list"

// A cache is a map that forgets what was not used for longest. The zero value
// is empty.
type cache[K comparable, V any] struct {
	items map[K]*list.Element
	order list.List // of *cached[K, V], the one used last in front
}

type cached[K comparable, V any] struct {
	key   K
	value V
}

// get returns the value of a key, nil if there is none. The pointer holds until
// the key is forgotten.
func (c *cache[K, V]) get(k K) *V {
	e := c.items[k]
	if e == nil {
		return nil
	}
	c.order.MoveToFront(e)
	return &e.Value.(*cached[K, V]).value
}

// add adds a key that is not there, with the zero value, and forgets the oldest
// one beyond limit, whose value it returns.
func (c *cache[K, V]) add(k K, limit int) (added, forgotten *V) {
	if c.items == nil {
		c.items = map[K]*list.Element{}
	}
	if c.order.Len() >= limit {
		e := c.order.Back()
		old := c.order.Remove(e).(*cached[K, V])
		delete(c.items, old.key)
		forgotten = &old.value
	}
	v := &cached[K, V]{key: k}
	c.items[k] = c.order.PushFront(v)
	return &v.value, forgotten
}

// oldest calls f for the values, those not used for longest first, until it
// returns false.
func (c *cache[K, V]) oldest(f func(*V) bool) {
	for e := c.order.Back(); e != nil; e = e.Prev() {
		if !f(&e.Value.(*cached[K, V]).value) {
			return
		}
	}
}
