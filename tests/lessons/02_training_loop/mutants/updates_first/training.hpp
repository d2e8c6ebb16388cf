// Updates, and looks at the norm afterwards: nothing is ever clipped.
// MUTANT BEGIN end_step
    update(rate, 1);
    return gradient_norm();
// MUTANT END
