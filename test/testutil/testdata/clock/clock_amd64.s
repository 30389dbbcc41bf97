#include "textflag.h"

// settableClock is clock_gettime(clock DI, *timespec SI) by the calling convention of C, which the runtime calls on a stack of its
// own. It is entered with a stack that is off by the return address, and calls the kernel's function on an aligned one.
TEXT ·settableClock(SB), NOSPLIT|NOFRAME, $0
	PUSHQ DI
	PUSHQ SI
	SUBQ  $8, SP
	MOVQ  ·kernelClock(SB), AX
	CALL  AX
	ADDQ  $8, SP
	POPQ  SI
	POPQ  DI
	CMPL  DI, $0 // CLOCK_REALTIME
	JNE   other
	MOVQ  ·secondsAhead(SB), CX
	ADDQ  CX, 0(SI) // its seconds

other:
	RET

// func settableClockPC() uintptr
TEXT ·settableClockPC(SB), NOSPLIT, $0-8
	LEAQ ·settableClock(SB), AX
	MOVQ AX, ret+0(FP)
	RET
