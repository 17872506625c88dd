package zigbee2mqtt

import "reflect"

// sizeOf returns the approximate memory of the value that v points to.
func sizeOf(v any) int {
	seen := map[uintptr]bool{}
	var more func(v reflect.Value) int // in addition to the value itself
	more = func(v reflect.Value) (size int) {
		switch v.Kind() {
		case reflect.String:
			return v.Len()
		case reflect.Pointer:
			if v.IsNil() || seen[v.Pointer()] {
				return 0
			}
			seen[v.Pointer()] = true
			return int(v.Type().Elem().Size()) + more(v.Elem())
		case reflect.Slice:
			size = v.Cap() * int(v.Type().Elem().Size())
			for i := range v.Len() {
				size += more(v.Index(i))
			}
		case reflect.Map:
			for i := v.MapRange(); i.Next(); {
				size += int(v.Type().Key().Size()+v.Type().Elem().Size())*3/2 + more(i.Key()) + more(i.Value())
			}
		case reflect.Struct:
			for i := range v.NumField() {
				size += more(v.Field(i))
			}
		}
		return size
	}
	return more(reflect.ValueOf(v))
}
