package land
import "io"
type StdStream = io.Writer
