package selector_test

import (
	"fmt"

	"holdfast/internal/selector"
)

func ExampleParse() {
	s, err := selector.Parse(`tier in (web, cache), env != test, !legacy, note = "a, b"`)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s)
	// Output: env!=test,!legacy,note="a, b",tier in (cache,web)
}

func ExampleParse_mistake() {
	_, err := selector.Parse("tier=web env=test")
	fmt.Println(err)
	// Output: selector: column 10: expected "," or the end, found "env"
}

func ExampleSelector_Matches() {
	s, err := selector.Parse(".name=shop, tier!=db")
	if err != nil {
		fmt.Println(err)
		return
	}
	fields := func(key string) []string {
		if key == selector.FieldName {
			return []string{"shop"}
		}
		return nil
	}
	fmt.Println(s.Matches(map[string]string{"tier": "web"}, fields))
	fmt.Println(s.Matches(map[string]string{"tier": "db"}, fields))
	fmt.Println(s.Matches(nil, fields))
	// Output:
	// true
	// false
	// true
}

func ExampleSelector_Check() {
	s, err := selector.Parse("tier=web, .role=manager")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.Check(func(field string) bool { return field == ".role" })) // a node
	fmt.Println(s.Check(nil))                                                 // a config
	// Output:
	// <nil>
	// selector: column 11: no such field: ".role"
}
