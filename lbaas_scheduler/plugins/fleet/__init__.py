"""Operations on the fleet: moving resources between devices, evacuating devices, evening out their load."""
